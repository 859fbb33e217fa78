"""Counts that the logs of a launch give without a replay: how often each event happened, and which block came after which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from consan.checker.changes import Spot
from consan.checker.replay import History
from consan.instrument.record.templates import END, LANES, Event, Template

_DID_NOT_HAPPEN = 0xFFFFFFFF


@dataclass
class Walked:
    """`ran`: executions of each block by threads; `pairs`: blocks that came directly after each other."""

    ran: Counter[int] = field(default_factory=Counter)
    skipped: Counter[Spot] = field(default_factory=Counter)  # executions of the block in which the guard kept the event from happening
    pairs: set[tuple[int, int]] = field(default_factory=set)
    mbarriers: dict[int, None] = field(default_factory=dict)  # the addresses of those that were initialised
    sizes: set[int] = field(default_factory=set)  # of the bulk copies to shared memory, in bytes

    def __add__(self, other: Walked) -> Walked:
        """The counts of both."""
        sums = Counter(self.ran), Counter(self.skipped)
        for mine, more in zip(sums, (other.ran, other.skipped), strict=True):
            mine.update(more)
        return Walked(*sums, self.pairs | other.pairs, self.mbarriers | other.mbarriers, self.sizes | other.sizes)

    def executions(self, spot: Spot) -> int:
        """How often an event happened, over all threads."""
        return self.ran[spot[0]] - self.skipped[spot]


def walk(histories: Iterable[tuple[History, int]], templates: Iterable[Template]) -> Walked:
    """Read logs; `histories` come with the number of units that have them."""
    known = {template.number: template for template in templates}
    sizes = np.zeros(max(known, default=0) + 2, np.int64)
    for number, template in known.items():
        sizes[number] = template.words
    found = Walked()
    for history, units in histories:
        _Walk(history.log, sizes, known, found, units).run()
    return found


@dataclass
class _Walk:
    log: npt.NDArray[np.uint32]  # warps x lines x lanes
    sizes: npt.NDArray[np.int64]
    templates: dict[int, Template]
    found: Walked
    units: int

    def run(self) -> None:
        """All lanes at once, a block each at a time."""
        warps, lines, _ = self.log.shape
        lanes = np.arange(warps * LANES)
        at, before = np.zeros(len(lanes), np.int64), np.zeros(len(lanes), np.int64)
        while len(lanes):
            numbers = self._words(lanes, at).astype(np.int64)
            known = (numbers > 0) & (numbers < len(self.sizes) - 1) & (numbers != END)
            ends = at + self.sizes[np.where(known, numbers, 0)]
            known &= ends < lines
            lanes, at, before, numbers, ends = (each[known] for each in (lanes, at, before, numbers, ends))
            closed = self._words(lanes, ends) != 0
            lanes, at, before, numbers, ends = (each[closed] for each in (lanes, at, before, numbers, ends))
            self._count(lanes, at, before, numbers)
            at, before = ends, numbers

    def _words(self, lanes: npt.NDArray[np.int64], at: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        return self.log[lanes // LANES, at, lanes % LANES]

    def _count(
        self, lanes: npt.NDArray[np.int64], at: npt.NDArray[np.int64], before: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]
    ) -> None:
        for code in np.unique(before << 32 | numbers):
            self.found.pairs.add((int(code) >> 32, int(code) & 0xFFFFFFFF))
        for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
            self.found.ran[int(number)] += int(count) * self.units
            here = numbers == number
            for place, event in enumerate(self.templates[int(number)].events):
                if event.guard_word >= 0:
                    guards = self._words(lanes[here], at[here] + event.guard_word)
                    self.found.skipped[int(number), place] += int((guards == _DID_NOT_HAPPEN).sum()) * self.units
                if event.kind == Event.MBARRIER_INIT:
                    self.found.mbarriers |= dict.fromkeys(self._values(event.address_word, event.offset, lanes[here], at[here]))
                if event.kind == Event.BULK_LOAD:
                    self.found.sizes |= self._values(event.a_word, event.a, lanes[here], at[here])

    def _values(self, word: int, number: int, lanes: npt.NDArray[np.int64], at: npt.NDArray[np.int64]) -> set[int]:
        """The sum of a word and a number."""
        if word < 0:
            return {number}
        return {int(each) + number for each in np.unique(self._words(lanes, at + word)) if each != _DID_NOT_HAPPEN}
