"""How often each kernel of a process was launched, by the table in which its interposer counts.

A handle of a kernel has the name under which it was looked up, and belongs to the module that it was looked up from.
"""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from consan.checker.logs.receipts import OWN_ENTRIES
from consan.native.orders import Orders, shared_pages
from consan.native.unasked import TABLE_BYTES, UnaskedLaunches
from consan.native.wire import LAUNCH, SPENT, Malformed
from consan.reports.counts import plural
from consan.reports.model import Report

UNKNOWN: Final = "a kernel that consan has not seen being looked up"
_ELSEWHERE: Final = "in another context, on another device, or in a graph whose launch is not recorded"
_MOST_TABLE: Final = 1 << 24  # bytes


class CountedLaunches:
    """The launches of one process. `launched`, `listed`: of instrumented kernels and of others, since the last report.

    `owners`: handles of modules that are instrumented; `entries`: the names of their kernels.
    """

    def __init__(self) -> None:
        self.launched: Counter[str] = Counter()
        self.listed: Counter[str] = Counter()
        self.owners: set[int] = set()
        self.entries: set[str] = set()
        self._known: dict[int, tuple[int, str]] = {}  # handle -> the handle it was looked up from, and a kernel's name
        self._seen: Counter[int] = Counter()  # launches that are counted already, by handle
        self._table: mmap.mmap | None = None
        self._entries = 0

    def share_table(self, orders: Orders, size: int, unasked: UnaskedLaunches) -> int:
        """Make the table, with one for launches without a question behind it; its address in the process. Raises `Malformed`."""
        if not 0 < size <= _MOST_TABLE or size % LAUNCH.size:
            raise Malformed("no size of a table")
        self._table, address = shared_pages(orders, size + SPENT.size + TABLE_BYTES)
        self._entries = size // LAUNCH.size
        unasked.lie_in(self._table, size + SPENT.size)
        return address

    @property
    def spent(self) -> float:
        """Seconds that threads of the program have been in the interposer: for requests, and for launches without one, by a sample."""
        return 0.0 if self._table is None else sum(SPENT.unpack_from(self._table, self._entries * LAUNCH.size)) / 1e9

    def found(self, handle: int, parent: int, name: str) -> None:
        """A handle was looked up from another one, or is in a graph (0) and may be known already."""
        if parent or not self._known.get(handle, (0, ""))[0]:
            self._known[handle] = parent, name

    def whose(self, handle: int) -> tuple[str, set[int]]:
        """A kernel's name, and the handles that it was looked up from: a function from a kernel, a kernel from a library."""
        name, chain = "", set[int]()
        while handle in self._known and handle not in chain:
            chain.add(handle)
            handle, own = self._known[handle]
            name = name or own
        return name or UNKNOWN, chain | {handle}

    def whose_or_asked(self, handle: int, ask: Callable[[int], str]) -> tuple[str, set[int]]:
        """The same. The name of one that was not looked up is asked for."""
        if self.whose(handle)[0] == UNKNOWN:
            self._known[handle] = self._known.get(handle, (0, ""))[0], ask(handle)
        return self.whose(handle)

    def unloaded(self, handle: int) -> set[int]:
        """A module is gone: the driver may give its handles again. Gives those that are gone with it."""
        self.count()
        gone = {handle}
        while more := {each for each, (parent, _) in self._known.items() if parent in gone} - gone:
            gone |= more
        for each in gone:
            self.owners.discard(each)
            self._known.pop(each, None)
        return gone

    def count(self) -> None:
        """Add the launches since the last count to those of their kernels."""
        if self._table is None:
            return
        table = np.frombuffer(self._table, np.uint64, 2 * self._entries).reshape(-1, 2)
        for handle, total in table[table[:, 1] > 0].tolist():
            new, self._seen[handle] = total - self._seen[handle], total
            if new and handle:
                name, owners = self.whose(handle)
                if name in OWN_ENTRIES:  # in a graph with recorded nodes
                    continue
                hooked = bool(self.owners & owners) or (0 in owners and name in self.entries)
                (self.launched if hooked else self.listed)[name] += new

    def unchecked(self, report: Report, why: Mapping[str, str]) -> list[str]:
        """Launches that the session has not counted. `why`: by kernel, where it is known."""
        counted = Counter[str]()
        for kernel in report.kernels:  # several forms of a kernel have one name
            counted[kernel.name] += kernel.launches
        missing = {name: count - counted[name] for name, count in self.launched.items()}
        return [
            f"{plural(count, 'launch', 'launches')} of {name} ran unchecked: {why.get(name, _ELSEWHERE)}"
            for name, count in missing.items()
            if count > 0
        ]

    def forget(self) -> None:
        """Start anew, for the next report."""
        self.launched.clear()
        self.listed.clear()
