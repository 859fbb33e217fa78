"""Which variables of a program of litmus_async.py race, by ISA 8.6 to 8.9.5, from its text alone: a set of edges and its closure.

It shares nothing with the product or with the clocks of the other oracles. Each mbarrier has one phase, so a wait comes behind all arrivals
and all completions of its mbarrier, whatever the run.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from litmus_async import AsyncLitmus, variable

RACE, PROXY, SCOPE = "race", "proxy", "scope"
Place = tuple[str, int]
_ASYNC = ("load", "push", "store", "sum")  # of the async proxy
_UPDATES = ("add", "inc", "sum")
_REACH = {"wait": True, "wait.cta": False}  # acquires: whether of .cluster scope


@dataclass
class Access:
    """A memory operation. `at`: its step, or its issue; `ends`: the steps that observe its completion, None of a synchronous one."""

    place: Place
    writes: bool
    action: str
    rank: int
    at: int
    ends: list[int] | None = None
    narrow: set[int] = field(default_factory=set)  # ends by acquires of .cta scope

    @property
    def bulk(self) -> bool:
        """Whether it goes through the async proxy."""
        return self.action in _ASYNC


class Judge:
    """The steps of all threads, base causality order between them, and the memory operations."""

    def __init__(self, test: AsyncLitmus, *, isa: bool) -> None:
        self.isa = isa
        self.steps = [(rank, warp, k, text.split()) for (rank, warp), texts in test.programs.items() for k, text in enumerate(texts)]
        self.before = {pair for pair in itertools.permutations(range(len(self.steps)), 2) if self._edge(*pair)}
        for z, x, y in itertools.product(range(len(self.steps)), repeat=3):
            if (x, z) in self.before and (z, y) in self.before:
                self.before.add((x, y))
        self.accesses = [one for at in range(len(self.steps)) for one in self._accesses(at)]

    def _edge(self, x: int, y: int) -> bool:
        """Program order, or synchronises-with (8.9.4)."""
        rank, warp, k, (action, *words) = self.steps[x]
        other_rank, other_warp, other_k, (other, *others) = self.steps[y]
        if (rank, warp) == (other_rank, other_warp):
            return k < other_k
        if action == other and action in ("bar", "cl"):
            return (action == "cl" or rank == other_rank) and self._round(x) == self._round(y)
        met = action in ("arrive", "expect") and other in _REACH and variable(words[0], rank) == variable(others[0], other_rank)
        return met and (_REACH[other] or rank == other_rank)

    def _round(self, x: int) -> int:
        rank, warp, k, (action, *_) = self.steps[x]
        return sum(step[:2] == (rank, warp) and step[2] < k and step[3][0] == action for step in self.steps)

    def _accesses(self, at: int) -> list[Access]:
        rank, _, _, (action, *words) = self.steps[at]
        places = [variable(word, rank) for word in words if not word.isdigit()]
        if action in ("W", "R", "add"):
            return [Access(places[0], action != "R", action, rank, at)]
        if action in ("put", "inc", "load", "push"):
            waits = [y for y, step in enumerate(self.steps) if step[3][0] in _REACH and variable(step[3][1], step[0]) == places[-1]]
            narrow = {y for y in waits if not _REACH[self.steps[y][3][0]] and self.steps[y][0] != rank}
            ends = [y for y in waits if not (self.isa and y in narrow)]
            found = [Access(places[0], True, action, rank, at, ends, narrow)]
            return found + [Access(places[1], False, action, rank, at, ends, narrow)] * (len(places) == 3)
        if action in ("store", "sum"):
            read, done = (self._waits(at, names) for names in (("read", "done"), ("done",)))
            return [Access(places[0], True, action, rank, at, done), Access(places[1], False, action, rank, at, read)]
        return []

    def _waits(self, at: int, names: tuple[str, ...]) -> list[int]:
        """The waits of the own thread behind a commit that is behind the issue."""
        own = [y for y, step in enumerate(self.steps) if step[:2] == self.steps[at][:2] and (at, y) in self.before]
        commits = [y for y in own if self.steps[y][3][0] == "commit"]
        return [y for y in own if self.steps[y][3][0] in names and any((one, y) in self.before for one in commits)]

    def _ordered(self, x: Access, y: Access) -> bool:
        if x.at == y.at:
            return True  # the parts of one operation
        starts = [x.at] if x.ends is None else x.ends
        return any((end, y.at) in self.before for end in starts)

    def _fenced(self, x: Access, y: Access) -> bool:
        """Whether a proxy fence lies on the way."""
        starts = [x.at] if x.ends is None else x.ends
        fences = [f for f, step in enumerate(self.steps) if step[3][0] == "fence"]
        return any((end, f) in self.before and (f, y.at) in self.before for end in starts for f in fences)

    def _lacks(self, x: Access, y: Access) -> str:
        """What an ordered pair lacks: 8.9.5, proxy-preserved order. The completion of a bulk copy has a fence for the generic proxy."""
        if not y.bulk or self._fenced(x, y):
            return ""
        if not x.bulk:
            return PROXY if x.writes or self.isa else ""  # a read first: D1
        return PROXY if self.isa and x.rank != y.rank else ""  # D4

    def verdict(self) -> dict[str, str]:
        """The worst bad pair of each variable that has one."""
        found: dict[str, str] = {}
        for x, y in itertools.combinations(self.accesses, 2):
            updates = x.action in _UPDATES and y.action in _UPDATES and x.writes and y.writes
            if x.place != y.place or not (x.writes or y.writes) or updates:
                continue
            first, second = (x, y) if self._ordered(x, y) else (y, x)
            bad = self._lacks(first, second) if self._ordered(first, second) else RACE
            if bad:
                found[x.place[0]] = RACE if RACE in (bad, found.get(x.place[0])) else bad
        return found
