"""The name that somebody probably meant: for kernels, whose names may be mangled.

Not handled: parameters and template arguments of a mangled name; the identifiers in it are what people type.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_CUTOFF = 0.6  # difflib's ratio: `scale` is meant by `scal` and `sclae`, not by `gemm`


def nearest(wanted: str, names: Iterable[str]) -> str:
    """The identifier in one of these names that is closest to `wanted`; "" if none is close."""
    spelled = {word.lower(): word for name in names for word in (*identifiers(name), name)}
    found = difflib.get_close_matches(wanted.lower(), spelled, 1, _CUTOFF)
    return spelled[found[0]] if found else ""


def identifiers(name: str) -> list[str]:
    """The name, or the source names in a mangled one (Itanium ABI: each has its length before it)."""
    if not name.startswith("_Z"):
        return [name]
    found, rest = list[str](), re.sub(r"^_ZN?[rVK]*", "", name)
    while (length := re.match(r"\d+", rest)) is not None:
        end = length.end() + int(length[0])
        found.append(rest[length.end() : end])
        rest = rest[end:]
    return [word for word in found if word.isidentifier()]


def listed(names: Iterable[str], most: int = 8) -> str:
    """`a, b, c and 4 more`."""
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more
