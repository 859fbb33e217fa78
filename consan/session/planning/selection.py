"""Which launches a session checks; and if it checked none, why, with the names of the kernels that were there.

The reason follows `model.NOTHING_RAN` in the report's reasons; it is empty where there was no kernel at all.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from consan.session.planning.budget import FIRST
from consan.suggest import listed, nearest

if TYPE_CHECKING:
    from consan.backends.base import Dim3
    from consan.options import KernelFilter
    from consan.session.planning.budget import OverheadBudget
    from consan.session.planning.options import LaunchFilter


Extents = tuple["Dim3", "Dim3", "Dim3"]


class Selection:
    """The filters of one session, and the launches that they have left out, by module and kernel. `budget`: of `--overhead`.

    `spared`: launches for which there was no time left; `hurried`: those for whose logs there was no room until a check was over.
    `recorded`: how many others have been, by module, kernel and extents.
    """

    def __init__(self, chosen: LaunchFilter, budget: OverheadBudget | None = None) -> None:
        self.left_out: Counter[tuple[int, str]] = Counter()
        self.spared: Counter[tuple[int, str]] = Counter()
        self.hurried: Counter[tuple[int, str, Extents]] = Counter()
        self.recorded: Counter[tuple[int, str, Extents]] = Counter()
        self.budget = budget
        self._filter, self._skip, self._limit = chosen.kernel_name, chosen.launch_skip, chosen.launch_count
        self._let_through = 0  # by the kernel's name

    def accepts(self, number: int, entry: str, extents: Extents) -> bool:
        """Whether to check the next launch. `extents`: its grid, block and cluster."""
        if not self._within(entry):
            self.left_out[number, entry] += 1
            return False
        if self.budget is None or self.budget.affords((number, entry, extents)):
            return True
        self.spared[number, entry] += 1
        return False

    @property
    def filters(self) -> bool:
        """Whether launches are left out by their kernels or their numbers."""
        return self._filter is not None or bool(self._skip) or self._limit is not None

    @property
    def spares(self) -> bool:
        """Whether launches may be left out to save time: those with a log are chosen one by one."""
        return self.budget is not None

    def until_there_is_time(self, number: int, entry: str, extents: Extents) -> ctypes.c_int64 | None:
        """As `OverheadBudget.until_there_is_time`; None without one."""
        return None if self.budget is None else self.budget.until_there_is_time((number, entry, extents))

    def unchecked(self, number: int, entry: str) -> int:
        """Launches of a kernel that were left out."""
        return sum(each[number, entry] for each in (self.left_out, self.spared, self.left_in_a_hurry()))

    def is_first(self, key: tuple[int, str, Extents]) -> bool:
        """Whether the next launch is one of the first of its shape that are recorded."""
        return self.recorded[key] < FIRST

    def left_in_a_hurry(self, *, never: bool = False) -> Counter[tuple[int, str]]:
        """The launches for whose logs there was no room, of shapes that were recorded otherwise, or `never`."""
        found: Counter[tuple[int, str]] = Counter()
        for (number, entry, extents), launches in self.hurried.items():
            found[number, entry] += launches * ((self.recorded[number, entry, extents] == 0) is never)
        return +found

    def _within(self, entry: str) -> bool:
        if self._filter is not None and not self._filter.matches(entry):
            return False
        self._let_through += 1
        index = self._let_through - 1 - self._skip
        return index >= 0 and (self._limit is None or index < self._limit)

    def names(self, entry: str) -> bool:
        """Whether the user has asked for this kernel by name."""
        return self._filter is not None and self._filter.matches(entry)

    def why_nothing(self, idle: Sequence[str]) -> str:
        """Why no launch was checked, where only `idle` kernels had no launch: one sentence, or ""."""
        left_out: Counter[str] = Counter()
        for (_, name), launches in self.left_out.items():
            left_out[name] += launches
        if left_out and self._filter is not None and not self._let_through:
            return _no_match(self._filter, left_out)
        if left_out:
            return f"--launch-skip {self._skip} leaves out every launch (of {listed(left_out)})"
        return f"these were compiled only: {listed(idle)}" if idle else ""

    def forget(self) -> None:
        """Start afresh after a report."""
        self.left_out.clear()
        self.spared.clear()
        self.hurried.clear()
        self.recorded.clear()
        if self.budget is not None:
            self.budget.forget()
        self._let_through = 0


def _no_match(kernel_filter: KernelFilter, left_out: Mapping[str, int]) -> str:
    mode, _, wanted = kernel_filter.text.partition("=")
    close = nearest(wanted.strip("^$.*") if mode == "regex" else wanted, left_out)
    hint = f" (did you mean kns={close}?)" if close else ""
    return f"--kernel-name {kernel_filter.text} matches none of the kernels that ran: {listed(left_out)}{hint}"
