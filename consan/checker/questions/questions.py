"""Questions of a recorded launch: what would be found if its kernel were changed (changes.py).

An answer holds the findings and what could not be checked. A change after which threads wait for ever, or leave a log that no longer fits,
has troubles: then the launch would have gone another way, and nothing is concluded.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.replay import History
from consan.checker.judging.checked import Checked
from consan.checker.judging.collected import LaunchedKernel
from consan.checker.judging.recorder import check
from consan.checker.logs.grouping import Group, Grouped
from consan.checker.logs.recorded_launch import RecordedLaunch
from consan.checker.logs.retained import Watched
from consan.checker.questions.changes import Change, EventPlaces, applied
from consan.checker.questions.walks import Walked, joined, passes_of, walk
from consan.dataclass import dataclass
from consan.instrument.record import Recorded
from consan.instrument.record.families.global_memory import Mode
from consan.reports.verdict.speaking.terms import Key
from consan.textures.description import TextureMemory


class Remembered(Watched):
    """A launch whose logs are read once, while its memory is there or later."""

    def __init__(self, launch: RecordedLaunch) -> None:
        super().__init__(launch)
        self._grouped: dict[int, Grouped] = {}
        self._window = launch.window()

    def grouped(self, limit: int) -> Grouped:
        """The clusters by history."""
        if limit not in self._grouped:
            self._grouped[limit] = super().grouped(limit)
        return self._grouped[limit]

    def window(self) -> tuple[int, int]:
        """The address of the first byte of a CTA's shared memory, and how many there are."""
        return self._window

    def histories(self, clusters: Sequence[int]) -> list[History]:
        """The histories of some clusters."""
        missing = [cluster for cluster in clusters if cluster not in self.read]
        if missing:
            super().histories(missing)
        return [self.read[cluster] for cluster in clusters]

    def texture_memory(self, handle: int) -> TextureMemory | None:
        """The bytes of a texture object that have addresses; None: they are not known."""
        return self.textures[handle] if handle in self.textures else super().texture_memory(handle)

    def free(self) -> None:
        """The memory belongs to the launch that is remembered."""


@dataclass(frozen=True)
class Answer:
    """The findings of a changed launch, and why they may be incomplete."""

    found: frozenset[Key]
    troubles: frozenset[str]
    events: int
    overtaken: bool  # a thread may wait for ever, if it comes later than in the replay

    def __add__(self, other: Answer) -> Answer:
        """The findings of both."""
        events, overtaken = self.events + other.events, self.overtaken or other.overtaken
        return Answer(self.found | other.found, self.troubles | other.troubles, events, overtaken)

    @classmethod
    def of(cls, checked: Checked) -> Answer:
        """The answer that a check gives."""
        return cls(
            frozenset(checked.keys),
            frozenset((*checked.gaps, *(each.why for each in checked.left.values()), *checked.global_races)),
            checked.tally.events,
            checked.overtaken,
        )


@dataclass
class Questions:
    """A recorded launch that is asked. `limit`: only the first CTAs (0: all). `most_events`, `most_seconds`: limits on the lane events, and
    on the processor time, of all answers: threads that take turns at one word have few events that take long. `most_lines`: the same, of
    the lines of the logs. `known`: findings that no answer has, since the launch may have them.
    """

    launch: RecordedLaunch
    recorded: Recorded
    launched: LaunchedKernel
    limit: int = 0
    exhaustive: bool = False
    most_events: float = math.inf
    most_seconds: float = math.inf
    most_lines: float = math.inf
    known: frozenset[Key] = frozenset()
    events: int = 0
    seconds: float = 0.0
    places: EventPlaces = field(init=False)

    def __post_init__(self) -> None:
        self.launch = self.launch if isinstance(self.launch, Remembered) else Remembered(self.launch)
        self.places = EventPlaces(self.recorded.blocks.templates, self.recorded.sites)

    @property
    def _whole(self) -> bool:
        return self.recorded.kernels[self.launched.entry].mode is Mode.SYNCED

    @functools.cached_property
    def _groups(self) -> tuple[Group, ...]:
        """The clusters by history. A launch that is replayed as a whole (grid.py) has no names of histories: each cluster is its own."""
        groups = self.launch.grouped(self.limit).groups
        if not self._whole:
            return groups
        return tuple(Group((member,), group.name) for group in groups for member in group.members)

    def each_history(self) -> list[History]:
        """The distinct histories."""
        return self.launch.histories([group.members[0] for group in self._groups])

    @functools.cached_property
    def _histories(self) -> list[tuple[History, int]]:
        """The histories of the launch, and how many clusters have each. Single clusters are read all at once."""
        histories = self.each_history()
        if self._whole:
            return [(joined(histories), 1)] if histories else []
        return [(history, len(group.members)) for history, group in zip(histories, self._groups, strict=True)]

    @functools.cached_property
    def walked(self) -> Walked:
        """Counts of the events and blocks in the logs."""
        return walk(self._histories, self.recorded.blocks.templates)

    @functools.cached_property
    def passes(self) -> list[dict[int, npt.NDArray[np.int64]]]:
        """How often each thread passed each block, of each history."""
        return [passes_of(history, self.recorded.blocks.templates) for history, _ in self._histories]

    @property
    def exhausted(self) -> bool:
        """Whether no more may be asked."""
        return self.events >= self.most_events or self.seconds >= self.most_seconds or self._is_long

    @functools.cached_property
    def _is_long(self) -> bool:
        """Whether the logs are too long to be read block by block, as those of threads that spin."""
        if len(self._groups) > self.most_lines:
            return True
        lines: int = sum(history.log.shape[1] for history in self.each_history())
        return lines > self.most_lines

    def ask(self, change: Change) -> Answer:
        """Replay the launch with a change; without one, as it was."""
        began = time.process_time()
        blocks = self.recorded.blocks
        recorded = replace(self.recorded, blocks=replace(blocks, templates=applied(blocks.templates, change)))
        answer = Answer.of(check(self.launch, recorded, self.launched, {}, limit=self.limit, exhaustive=self.exhaustive))
        self.events, self.seconds = self.events + answer.events, self.seconds + time.process_time() - began
        return replace(answer, found=answer.found - self.known)


@dataclass(frozen=True)
class AskedLaunches:
    """Recorded launches of one kernel that are asked together: an answer has what any of them finds."""

    each: tuple[Questions, ...]

    @property
    def places(self) -> EventPlaces:
        """The events of the kernel."""
        return self.each[0].places

    @property
    def blocks(self) -> set[tuple[int, int, int]]:
        """The shapes of their CTAs."""
        return {questions.launched.block for questions in self.each}

    @functools.cached_property
    def walked(self) -> Walked:
        """Counts over all of them."""
        return functools.reduce(Walked.__add__, (questions.walked for questions in self.each))

    @property
    def exhausted(self) -> bool:
        """Whether no more may be asked."""
        return any(questions.exhausted for questions in self.each)

    def ask(self, change: Change) -> Answer:
        """Replay all of them with a change."""
        return functools.reduce(Answer.__add__, (questions.ask(change) for questions in self.each))
