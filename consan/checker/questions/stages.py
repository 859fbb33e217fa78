"""Finds rings of stages in shared memory, and asks whether fewer stages would serve: it replays a launch as if its kernel had fewer.

A ring is recognised by an instruction that copies to shared memory and repeats a series of equidistant addresses. The copies of a thread
to the stages, and its reads of them, are numbered: the first, the second, and so on. With fewer stages, each number has another slot, and
the log gets the addresses of that slot. Mbarriers, waits and barriers stay as they are.

Not found: rings whose copies are unrolled (each instruction has one stage), and rings of one stage. Not judged (`Unclear`): stages that are
not used in their order, and registers that address a stage and something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.replay import History
from consan.checker.logs.recorded_launch import RecordedLaunch
from consan.checker.questions.changes import Statement
from consan.checker.questions.questions import AskedLaunches, Questions
from consan.checker.questions.walks import DID_NOT_HAPPEN, Steps, steps_of
from consan.dataclass import dataclass
from consan.instrument import effects
from consan.instrument.record.text.templates import Template

Array = npt.NDArray[np.int64]
FILLS = (effects.CopyIssue, effects.BulkLoad, effects.TensorLoad)
USES = (effects.Read, effects.Write, effects.Atomic, effects.BulkStore, effects.TensorStore, effects.ProductOperand)
# The operations that touch shared memory at addresses that are not followed.
_NOT_FOLLOWED = (
    effects.Fill, effects.StoreAsync, effects.BulkPush, effects.LaunchRequest,
    effects.TensorAlloc, effects.TensorMma, effects.TensorCp,
)  # fmt: skip
_LEAST_FILLS = 3  # of an instruction, by one thread
_DESCRIBED, _CLUSTER = 0x3FFF, 4  # the bits of a descriptor's start, and their cluster


class Unclear(Exception):  # noqa: N818
    """The log does not show where fewer stages would be."""


@dataclass(frozen=True)
class Ring:
    """Stages of equal size, one behind the other. `site`: of an instruction that fills them."""

    begin: int
    bytes: int
    stages: int
    site: int

    def stage(self, addresses: Array) -> Array:
        """The stages of addresses; those elsewhere have none of the ring."""
        return (addresses - self.begin) // self.bytes


@dataclass(frozen=True)
class Staged:
    """The facts about a ring: the fewest stages with which nothing is found, and how often threads filled it."""

    ring: Ring
    serve: int
    ran: int

    def __add__(self, other: Staged) -> Staged:
        """The stages that both launches need."""
        return replace(self, serve=max(self.serve, other.serve), ran=self.ran + other.ran)


def staged(launches: AskedLaunches) -> list[Staged]:
    """The rings of some launches."""
    found: dict[Statement | None, Staged] = {}
    for questions in launches.each:
        for each in _staged(questions):
            statement = questions.places.statement(each.ring.site)
            found[statement] = found[statement] + each if statement in found else each
    return list(found.values())


def _staged(questions: Questions) -> Iterator[Staged]:
    histories, templates = questions.each_history(), questions.recorded.blocks.templates
    for rings, ran in _rings(histories[0], templates) if histories and _is_followed(templates) else ():
        serve = rings[0].stages
        while serve > 1 and not questions.exhausted and _serves(questions, rings, serve - 1):
            serve -= 1
        yield from (Staged(ring, serve, ran) for ring in rings)


def _is_followed(templates: Iterable[Template]) -> bool:
    """Whether all that touches shared memory is followed: not where other CTAs do, nor operands in tensor memory's instructions."""
    events = [event for template in templates for event in template.events]
    return not any(isinstance(event, _NOT_FOLLOWED) or (isinstance(event, (*FILLS, *USES)) and _is_elsewhere(event)) for event in events)


def _is_elsewhere(event: Any) -> bool:
    """Whether an event may touch another CTA's memory."""
    return getattr(event, "ranked", False) or getattr(event, "multicast", False)


def _serves(questions: Questions, rings: list[Ring], stages: int) -> bool:
    """Whether nothing is found with so many stages."""
    asked = replace(questions, launch=Restaged(questions.launch, rings, stages, questions.recorded.blocks.templates))
    try:
        answer = asked.ask({})
    except Unclear:
        return False
    questions.events = asked.events
    return not answer.found and not answer.troubles


# -- rings -----------------------------------------------------------------------------------------------------------------------


def _rings(history: History, templates: Iterable[Template]) -> Iterator[tuple[list[Ring], int]]:
    """Rings with the same number of stages come together: registers may address a stage of each. With counts of their copies."""
    steps, fills = steps_of(history.log, templates), dict[int, list[tuple[Array, Array]]]()
    for lanes, at, event in _events(steps, FILLS):
        addresses = _addresses(steps, event, lanes, at)
        fills.setdefault(event.site, []).append((lanes[addresses >= 0], addresses[addresses >= 0]))
    groups: dict[int, list[tuple[Ring, int]]] = {}
    for site, parts in fills.items():
        lanes, addresses = (np.concatenate(column) for column in zip(*parts, strict=True))
        if (ring := _ring(site, lanes, addresses)) is not None:
            groups.setdefault(ring.stages, []).append((ring, len(lanes)))
    for found in groups.values():
        yield _merged([ring for ring, _ in found]), max(ran for _, ran in found)


def _ring(site: int, lanes: Array, addresses: Array) -> Ring | None:
    if not len(lanes):
        return None
    first = addresses[lanes == np.bincount(lanes).argmax()]
    places = np.unique(first)
    distances = np.unique(np.diff(places))
    if len(first) < _LEAST_FILLS or len(distances) != 1:
        return None
    ring = Ring(int(addresses.min()), int(distances[0]), len(places), site)
    in_turn = np.unique(np.diff(ring.stage(first - first.min() + ring.begin)) % ring.stages)
    inside = addresses.max() < ring.begin + ring.stages * ring.bytes
    return ring if in_turn.tolist() == [1] and inside else None


def _merged(rings: list[Ring]) -> list[Ring]:
    """One ring for all instructions that fill parts of its stages."""
    found: list[Ring] = []
    for ring in sorted(rings, key=lambda ring: (ring.bytes, ring.begin)):
        if not found or found[-1].bytes != ring.bytes or ring.begin - found[-1].begin >= ring.bytes:
            found.append(ring)
    return found


# -- fewer stages ----------------------------------------------------------------------------------------------------------------


@dataclass
class Restaged:
    """A launch as if its rings had fewer stages."""

    launch: RecordedLaunch
    rings: list[Ring]
    stages: int
    templates: Iterable[Template]
    _histories: dict[int, History] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.launch, name)

    def histories(self, clusters: Sequence[int]) -> list[History]:
        """The histories of some clusters, with other addresses."""
        for cluster in clusters:
            if cluster not in self._histories:
                (history,) = self.launch.histories([cluster])
                self._histories[cluster] = replace(history, log=_Restaging(history, self.rings, self.stages, self.templates).log())
        return [self._histories[cluster] for cluster in clusters]


class _Restaging:
    """One log. The number of the stage that a lane fills, and of the stage that it uses, only grows, by one at a time."""

    def __init__(self, history: History, rings: list[Ring], stages: int, templates: Iterable[Template]) -> None:
        self._rings, self._stages = rings, stages
        self._steps = steps_of(history.log, templates)
        self._log: npt.NDArray[np.uint32] = history.log.copy()
        lanes = history.log.shape[0] * history.log.shape[2]
        self._numbers = {(ring, fills): np.full(lanes, -1, np.int64) for ring in rings for fills in (False, True)}

    def log(self) -> npt.NDArray[np.uint32]:
        """The log with the addresses of fewer stages."""
        for lanes, at, number in self._steps:
            for block in np.unique(number):
                here = number == block
                self._block(self._steps.templates[int(block)], lanes[here], at[here])
        return self._log

    def _block(self, template: Template, lanes: Array, at: Array) -> None:
        changes: dict[int, tuple[Array, Array]] = {}  # by word: which lanes' events happened, and by how much the word changes
        for event in template.events:
            if not isinstance(event, (*FILLS, *USES)):
                continue
            addresses = _addresses(self._steps, event, lanes, at)
            step, happened = self._step(event, lanes, addresses), addresses >= 0
            word = _word(event)
            if word < 0 and step.any():
                raise Unclear
            before, other = changes.get(word, (np.zeros(len(lanes), bool), step))
            if (before & happened & (other != step)).any():
                raise Unclear
            changes[word] = before | happened, np.where(happened, step, other)
        for word, (_, step) in changes.items():
            if word >= 0:
                self._log[lanes // 32, at + word, lanes % 32] += step.astype(np.uint32)

    def _step(self, event: effects.Effect, lanes: Array, addresses: Array) -> Array:
        """By how much the word of an event's address changes."""
        step = np.zeros(len(lanes), np.int64)
        for ring in self._rings:
            inside = (addresses >= ring.begin) & (addresses < ring.begin + ring.stages * ring.bytes)
            numbers, stage = self._numbers[ring, isinstance(event, FILLS)], ring.stage(addresses)
            last = np.maximum(numbers[lanes], 0)
            number = last + (stage - last) % ring.stages
            if (inside & (number > last + 1)).any():
                raise Unclear
            numbers[lanes[inside]] = number[inside]
            step = np.where(inside, (number % self._stages - stage) * ring.bytes, step)
        return step >> _CLUSTER if isinstance(event, effects.ProductOperand) else step


def _word(event: effects.Effect) -> int:
    return _place(event).word


def _place(event: Any) -> effects.WordValue:
    """The address of an event, or the lower half of its descriptor."""
    place: effects.WordValue = event.low if isinstance(event, effects.ProductOperand) else event.at
    return place


def _addresses(steps: Steps, event: effects.Effect, lanes: Array, at: Array) -> Array:
    """The shared addresses of an event in each lane; -1 where it did not happen."""
    word = _word(event)
    value = steps.words(lanes, at + word).astype(np.int64) if word >= 0 else np.zeros(len(lanes), np.int64)
    happened = value != DID_NOT_HAPPEN
    if event.guard >= 0:
        happened &= steps.words(lanes, at + event.guard) != DID_NOT_HAPPEN
    if isinstance(event, effects.ProductOperand):
        return np.where(happened, ((value + _place(event).number) & _DESCRIBED) << _CLUSTER, -1)
    return np.where(happened, (value + _place(event).number) & 0xFFFFFFFF, -1)


def _events(steps: Steps, kinds: tuple[type[effects.Effect], ...]) -> Iterator[tuple[Array, Array, effects.Effect]]:
    """The events of some kinds, in the order of each lane: lanes, places in the log."""
    for lanes, at, number in steps:
        for block in np.unique(number):
            here = number == block
            yield from ((lanes[here], at[here], event) for event in steps.templates[int(block)].events if isinstance(event, kinds))
