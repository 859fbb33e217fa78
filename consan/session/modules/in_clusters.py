"""Kernels whose grid is counted in clusters (ISA "Miscellaneous Directives: .blocksareclusters").

All grids of a session count CTAs. A module that the session loads is freed of the directive: its launches then count CTAs, and its clusters
keep their shape. A framework loads the module as it is, and its grid is converted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from consan.backends.base import Dim3
from consan.instrument.ptx import Function, Module, parse

if TYPE_CHECKING:
    from consan.session.modules.prepared import Prepared

_WORD: Final = "blocksareclusters"
_DIRECTIVE: Final = re.compile(rf"\.{_WORD}\b")


def in_ctas(ptx: str | Module) -> str | Module:
    """A module without the directive; places in its text stay the same."""
    text = ptx if isinstance(ptx, str) else ptx.text
    if _WORD not in text:
        return ptx
    freed = _DIRECTIVE.sub(lambda found: " " * len(found[0]), text)
    return freed if isinstance(ptx, str) else parse(freed, ptx.name)


def unit_of(function: Function) -> Dim3:
    """The CTAs, in each dimension, of one that a kernel's grid counts."""
    return function.required_cluster if _WORD in function.directives else (1, 1, 1)


def units_of(prepared: Prepared) -> dict[str, Dim3]:
    """`unit_of` each kernel of a module that counts its grid in clusters."""
    if _WORD not in prepared.plain:  # most modules need not be parsed for this
        return {}
    return {each.name: unit_of(each) for each in prepared.instrumented.module.functions if _WORD in each.directives}


def grid_in_ctas(prepared: Prepared, entry: str, grid: Dim3) -> Dim3:
    """The CTAs of a launch whose grid the caller counts as the kernel's text says."""
    unit = prepared.units.get(entry)
    return grid if unit is None else scaled(grid, unit)


def scaled(grid: Dim3, unit: Dim3) -> Dim3:
    """The product of the extents."""
    return grid[0] * unit[0], grid[1] * unit[1], grid[2] * unit[2]
