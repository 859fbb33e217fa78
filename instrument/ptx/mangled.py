"""Names of the source in mangled ones (Itanium C++ ABI, "source names": a length, and the name)."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LENGTH = re.compile(r"\d+")


def source_name(symbol: str) -> str:
    """`flag` of `_ZZ1kE4flag`: the last name in a mangled one."""
    return list(_components(symbol))[-1] if symbol.startswith("_Z") and any(_components(symbol)) else symbol


def _components(symbol: str) -> Iterator[str]:
    at = 0
    while (found := _LENGTH.search(symbol, at)) is not None:
        at = found.end() + int(found[0])
        if at <= len(symbol):
            yield symbol[found.end() : at]
