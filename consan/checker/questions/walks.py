"""Counts that the logs of a launch give without a replay: how often each event happened, and which block came after which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.replay import History
from consan.checker.questions.changes import Spot
from consan.dataclass import dataclass
from consan.instrument import effects
from consan.instrument.effects import LANES, WordValue
from consan.instrument.record.text.templates import END, Template

DID_NOT_HAPPEN = 0xFFFFFFFF


@dataclass
class Walked:
    """`ran`: executions of each block by threads; `pairs`: blocks that came directly after each other."""

    ran: Counter[int] = field(default_factory=Counter)
    skipped: Counter[Spot] = field(default_factory=Counter)  # executions of the block in which the guard kept the event from happening
    pairs: set[tuple[int, int]] = field(default_factory=set)
    mbarriers: dict[int, None] = field(default_factory=dict)  # the addresses of those that were initialised
    sizes: set[int] = field(default_factory=set)  # of bulk copies and asynchronous stores to shared memory, in bytes

    def __add__(self, other: Walked) -> Walked:
        """The counts of both."""
        ran, skipped = Counter(self.ran), Counter(self.skipped)
        ran.update(other.ran)
        skipped.update(other.skipped)
        return Walked(ran, skipped, self.pairs | other.pairs, self.mbarriers | other.mbarriers, self.sizes | other.sizes)

    def executions(self, spot: Spot) -> int:
        """How often an event happened, over all threads."""
        return self.ran[spot[0]] - self.skipped[spot]


def walk(histories: Iterable[tuple[History, int]], templates: Iterable[Template]) -> Walked:
    """Read logs; `histories` come with the number of clusters that have them."""
    found = Walked()
    for history, clusters in histories:
        steps = steps_of(history.log, templates)
        before = np.zeros(steps.lanes, np.int64)
        for lanes, at, numbers in steps:
            _Count(steps, found, clusters).step(lanes, at, before[lanes], numbers)
            before[lanes] = numbers
    return found


def passes_of(history: History, templates: Iterable[Template]) -> dict[int, npt.NDArray[np.int64]]:
    """How often each thread passed each block: CTAs x threads, by the number of the block."""
    steps = steps_of(history.log, templates)
    found: dict[int, npt.NDArray[np.int64]] = {}
    for lanes, _, numbers in steps:
        for number in np.unique(numbers):
            passes = found.setdefault(int(number), np.zeros(steps.lanes, np.int64))
            passes[lanes[numbers == number]] += 1
    return {number: passes.reshape(history.ctas, -1)[:, : history.threads] for number, passes in found.items()}


def joined(histories: Sequence[History]) -> History:
    """Histories of clusters of one shape as one, to be counted together."""
    lines = max(history.log.shape[1] for history in histories)
    logs = [np.pad(history.log, ((0, 0), (0, lines - history.log.shape[1]), (0, 0))) for history in histories]
    return replace(histories[0], log=np.concatenate(logs), ctas=sum(history.ctas for history in histories))


@dataclass
class Steps:
    """The blocks of a log: all lanes at once, a block each at a time: lanes, places in the log, numbers of the blocks."""

    log: npt.NDArray[np.uint32]  # warps x lines x lanes
    sizes: npt.NDArray[np.int64]
    templates: dict[int, Template]

    @property
    def lanes(self) -> int:
        """The lanes of all warps."""
        return int(self.log.shape[0]) * LANES

    def __iter__(self) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        lanes, at = np.arange(self.lanes), np.zeros(self.lanes, np.int64)
        while len(lanes):
            numbers = self.words(lanes, at).astype(np.int64)
            known = (numbers > 0) & (numbers < len(self.sizes) - 1) & (numbers != END)
            ends = at + self.sizes[np.where(known, numbers, 0)]
            known &= ends < self.log.shape[1]
            lanes, at, numbers, ends = (each[known] for each in (lanes, at, numbers, ends))
            closed = self.words(lanes, ends) != 0
            lanes, at, numbers, ends = (each[closed] for each in (lanes, at, numbers, ends))
            yield lanes, at, numbers
            at = ends

    def words(self, lanes: npt.NDArray[np.int64], at: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """A word of each lane."""
        return self.log[lanes // LANES, at, lanes % LANES]


def steps_of(log: npt.NDArray[np.uint32], templates: Iterable[Template]) -> Steps:
    """The blocks of a log."""
    known = {template.number: template for template in templates}
    sizes = np.zeros(max(known, default=0) + 2, np.int64)
    for number, template in known.items():
        sizes[number] = template.words
    return Steps(log, sizes, known)


@dataclass
class _Count:
    steps: Steps
    found: Walked
    clusters: int

    def step(
        self, lanes: npt.NDArray[np.int64], at: npt.NDArray[np.int64], before: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]
    ) -> None:
        """Count one block of each lane."""
        for code in np.unique(before << 32 | numbers):
            self.found.pairs.add((int(code) >> 32, int(code) & 0xFFFFFFFF))
        for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
            self.found.ran[int(number)] += int(count) * self.clusters
            here = numbers == number
            for place, event in enumerate(self.steps.templates[int(number)].events):
                if event.guard >= 0:
                    guards = self.steps.words(lanes[here], at[here] + event.guard)
                    self.found.skipped[int(number), place] += int((guards == DID_NOT_HAPPEN).sum()) * self.clusters
                if isinstance(event, effects.MbarrierInit):
                    self.found.mbarriers |= dict.fromkeys(self._values(event.at, lanes[here], at[here]))
                if isinstance(event, effects.BulkLoad):
                    self.found.sizes |= self._values(event.size, lanes[here], at[here])
                if isinstance(event, effects.StoreAsync):
                    self.found.sizes.add(event.bytes)

    def _values(self, value: WordValue, lanes: npt.NDArray[np.int64], at: npt.NDArray[np.int64]) -> set[int]:
        """A value in some lanes."""
        if value.is_known:
            return {value.number}
        return {int(each) + value.number for each in np.unique(self.steps.words(lanes, at + value.word)) if each != DID_NOT_HAPPEN}
