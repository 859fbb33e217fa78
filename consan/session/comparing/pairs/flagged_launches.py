"""The flags of a launch that other GPUs may use, and which writes the reads of one place have read from (SEMANTICS 12, R-RK8)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.concurrent_launches import PeerFlagKind, RetainedFlags, Rows
from consan.dataclass import dataclass
from consan.session.comparing.array_rows import span_of

_ST, _EXCH, _ADD, _CAS = 2, 3, 4, 5  # FlagOrder::Operation
_MOST_STATES: Final = 1 << 14
ALL: Final = 1
"""A set of numbers, which are from 1: bit 0 of a set of acquires stands for all accesses of the later launch."""

_FIRST: Final = -1  # stands for what was there at first
Place = tuple[int, int]
"""The address and the bytes of a flag."""


@dataclass(eq=False)
class FlaggedLaunch:
    """A launch. `flags`: those that other GPUs may use; None: they are not known."""

    rank: int
    rows: Rows
    flags: RetainedFlags | None

    @functools.cached_property
    def accesses(self) -> list[FlagAccess]:
        """Its flags."""
        if self.flags is None:
            return []
        columns = (self.flags.rows[name].tolist() for name in FlagAccess.COLUMNS)
        return [FlagAccess(self, at, *values) for at, values in enumerate(zip(*columns, strict=True))]

    @functools.cached_property
    def groups(self) -> list[AccessGroup]:
        """Its accesses by the acquires before them and the releases behind them."""
        keys: npt.NDArray[np.uint64] = self.rows["begins"].astype(np.uint64) << np.uint64(32) | self.rows["ends"]
        _, groups = np.unique(keys, return_inverse=True)
        order, sets = np.argsort(groups, kind="stable"), self._sets()
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1)).tolist()
        found = []
        for rows in map(self.rows.__getitem__, np.split(order, starts)[1:]):
            begins, ends = (sets[int(rows[0][name])] if sets else ALL for name in ("begins", "ends"))
            found.append(AccessGroup(begins, ends, rows, *span_of(rows)))
        return found

    def _sets(self) -> list[int]:
        """The sets of numbers that accesses name: a bit for each number, and bit 0."""
        words, at, found = [] if self.flags is None else self.flags.sets.tolist(), 0, list[int]()
        while at < len(words):
            found.append(functools.reduce(lambda bits, number: bits | 1 << number, words[at + 1 : at + 1 + words[at]], ALL))
            at += 1 + words[at]
        return found


class AccessGroup(NamedTuple):
    """Accesses with the same acquires before them and the same releases behind them. `begin`, `end`: their bytes are between."""

    begins: int
    ends: int
    rows: Rows
    begin: int
    end: int


Over = Callable[[FlaggedLaunch, FlaggedLaunch], bool]
"""Whether a launch is over when another one starts."""


@dataclass(eq=False)
class FlagAccess:
    """A flag. `at`: its place among those of its launch."""

    COLUMNS: ClassVar = (
        *("address", "bytes", "operation", "old", "first", "second"),
        *("flags", "cluster", "thread", "acquired", "released"),
    )
    launch: FlaggedLaunch
    at: int
    address: int
    bytes: int
    operation: int
    value: int
    first: int
    second: int
    flags: int
    cluster: int
    number: int
    acquired: int
    released: int

    def has(self, kind: PeerFlagKind) -> bool:
        """Whether it is of a kind."""
        return bool(self.flags & kind)

    @property
    def old(self) -> int | None:
        """The value that it has read."""
        return self.value if self.has(PeerFlagKind.OBSERVES) else None

    @property
    def stored(self) -> int | None:
        """The value that it leaves, if that is known."""
        mask = (1 << 8 * self.bytes) - 1
        if self.operation in (_ST, _EXCH):
            return self.first & mask
        if self.operation == _CAS:
            return self.second & mask
        return (self.value + self.first) & mask if self.operation == _ADD and self.has(PeerFlagKind.OBSERVES) else None

    @property
    def place(self) -> Place:
        """Its bytes."""
        return self.address, self.bytes

    @property
    def thread(self) -> tuple[int, int]:
        """The CTA and the thread in it."""
        return self.cluster, self.number


class AccessesOfPlace:
    """The accesses of one place: all orders of them in which each read gets the value that is there."""

    def __init__(self, accesses: list[FlagAccess], over: Over) -> None:
        self._all = accesses
        self._behind = [
            sum(1 << at for at, one in enumerate(accesses) if one is not other and _comes_before(one, other, over)) for other in accesses
        ]
        self._possible: list[set[int]] = [set() for _ in accesses]
        self._ends: dict[tuple[int, int, int | None], bool] = {}

    def sources(self, first: Iterable[int]) -> dict[FlagAccess, FlagAccess | None] | None:
        """Which write each read has read from, where all orders agree. None: no order fits.

        `first`: values that the place may have held at first.
        """
        some = [self._completes(0, _FIRST, value) for value in first]
        if len(self._ends) >= _MOST_STATES:
            return {}
        if not any(some):
            return None
        found = {at: next(iter(each)) for at, each in enumerate(self._possible) if len(each) == 1}
        return {self._all[at]: None if source == _FIRST else self._all[source] for at, source in found.items()}

    def _completes(self, done: int, last: int, value: int | None) -> bool:
        """Whether the accesses that are left can follow: `last` has left the value, None where that is not known."""
        state = done, last, value
        if done + 1 == 1 << len(self._all):
            return True
        if state not in self._ends:
            if len(self._ends) >= _MOST_STATES:
                return False
            self._ends[state] = False
            taken = [self._follows(state, at) for at in range(len(self._all))]  # all: each may have another source
            self._ends[state] = any(taken)
        return self._ends[state]

    def _follows(self, state: tuple[int, int, int | None], at: int) -> bool:
        (done, last, value), access = state, self._all[at]
        if done >> at & 1 or self._behind[at] & ~done or (access.old is not None and value not in (None, access.old)):
            return False
        writes = access.has(PeerFlagKind.WRITES)
        completes = self._completes(done | 1 << at, at if writes else last, access.stored if writes else value)
        if completes and access.old is not None:
            self._possible[at].add(last)
        return completes


def _comes_before(one: FlagAccess, other: FlagAccess, over: Over) -> bool:
    if one.launch is other.launch:
        return one.thread == other.thread and one.at < other.at
    return over(one.launch, other.launch)
