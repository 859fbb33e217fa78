"""Kernels whose grid is counted in clusters (ISA "Miscellaneous Directives: .blocksareclusters").

All grids of a session count CTAs. A module that the session loads is freed of the directive: its launches then count CTAs, and its clusters
keep their shape. A framework loads the module as it is, and its grid is converted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from consan.backends.base import Dim3
from consan.instrument.ptx import Module, parse

if TYPE_CHECKING:
    from consan.session.prepared import Prepared

_WORD: Final = "blocksareclusters"
_DIRECTIVE: Final = re.compile(rf"\.{_WORD}\b")


def in_ctas(ptx: str | Module) -> str | Module:
    """A module without the directive; places in its text stay the same."""
    text = ptx if isinstance(ptx, str) else ptx.text
    if _WORD not in text:
        return ptx
    freed = _DIRECTIVE.sub(lambda found: " " * len(found[0]), text)
    return freed if isinstance(ptx, str) else parse(freed, ptx.name)


def grid_in_ctas(prepared: Prepared, entry: str, grid: Dim3) -> Dim3:
    """The CTAs of a launch whose grid the caller counts as the kernel's text says."""
    if _WORD not in prepared.plain:
        return grid
    function = next((each for each in prepared.instrumented.module.functions if each.name == entry), None)
    if function is None or _WORD not in function.directives:
        return grid
    shape = function.directives.get("reqnctapercluster", ())
    x, y, z = (*(shape if isinstance(shape, tuple) else ()), 1, 1, 1)[:3]
    return grid[0] * int(x), grid[1] * int(y), grid[2] * int(z)
