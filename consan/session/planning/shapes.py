"""The shapes of a session's launches, and for which of them races in global memory were searched (`reports/verdict/coverage.py`)."""

from __future__ import annotations

from dataclasses import field
from typing import TypedDict

from consan.backends.base import Dim3
from consan.dataclass import dataclass


class OfKernel(TypedDict):
    """The fields of a `KernelSummary`."""

    global_shapes: tuple[str, ...]
    global_missed: tuple[str, ...]


@dataclass
class LaunchShapes:
    """By the text of a module, which its forms have in common, and the kernel: whether a launch of each grid and block was checked."""

    _known: dict[tuple[str, str], dict[tuple[Dim3, Dim3], bool]] = field(default_factory=dict)

    def ran(self, text: str, entry: str, grid: Dim3, block: Dim3, *, looked: bool = False) -> None:
        """A launch was made. `looked`: its accesses were compared in full, or proven apart."""
        known = self._known.setdefault((text, entry), {})
        known[grid, block] = looked or known.get((grid, block), False)

    def has(self, text: str, entry: str, grid: Dim3, block: Dim3) -> bool:
        """Whether a launch of a shape was made."""
        return (grid, block) in self._known.get((text, entry), {})

    def known(self, text: str, entry: str) -> list[tuple[Dim3, Dim3, bool]]:
        """The grids and blocks of a kernel, and whether a launch of each was checked: for a file of histories."""
        return [(*shape, looked) for shape, looked in self._known.get((text, entry), {}).items()]

    def of(self, text: str, entry: str) -> OfKernel:
        """For the summary of a kernel."""
        known = self._known.get((text, entry), {})
        looked, missed = (tuple(_named(*shape) for shape, one in known.items() if one is wanted) for wanted in (True, False))
        return {"global_shapes": looked, "global_missed": missed}

    def clear(self) -> None:
        """Start anew, for the next report."""
        self._known.clear()


def _named(grid: Dim3, block: Dim3) -> str:
    return " x ".join("x".join(map(str, extent)) for extent in (grid, block))
