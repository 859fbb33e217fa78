"""The extents of a grid, a block or a cluster, where fewer than three are written."""

from __future__ import annotations

from collections.abc import Iterable


def three_extents(given: Iterable[int]) -> tuple[int, int, int]:
    """One to three extents, or none, as three: those that are left out are 1 (ISA ".reqntid", ".reqnctapercluster")."""
    x, y, z = (*given, 1, 1, 1)[:3]
    return x, y, z
