"""Repairs of a finding that may fit, smallest first: an operand, a place or a scope of what is there, then one more instruction, then two.

Each is a change (changes.py) and the steps that say it in words. Whether one removes the finding is for the replay to say.

Not tried: new mbarriers, arrivals and counts of bytes, other addresses, barriers of some warps only.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from consan.checker.changes import Change, Statement, barrier, cluster_barrier, wait, warp_barrier
from consan.checker.questions import Questions
from consan.instrument.abi.events import FindingFlags, Kind, Reason
from consan.instrument.abi.events import Operation as InFlight
from consan.instrument.record.templates import Event, Flag, TemplateEvent

_SCOPE_BITS, _GPU_SCOPE = 3 << 4, 2 << 4


@dataclass(frozen=True)
class RepairStep:
    """One step of a repair: an instruction that is added, moved, altered or left out, and the statement that tells where."""

    action: str  # "add", "move", "alter", "leave-out"
    instruction: str
    where: str  # "before" or "after" the statement; "at" it
    site: int  # a site of the statement
    whole: bool = False  # its whole line is meant


@dataclass(frozen=True)
class Repair:
    """Steps, and the change that they make."""

    steps: tuple[RepairStep, ...]
    change: Change


@dataclass(frozen=True)
class _Piece:
    """Instructions that may be added, as events and in words."""

    events: tuple[TemplateEvent, ...]
    instructions: tuple[str, ...]

    def __add__(self, other: _Piece) -> _Piece:
        return _Piece((*self.events, *other.events), (*self.instructions, *other.instructions))


_BARRIER = _Piece((barrier(),), ("bar.sync 0",))
_WARP_BARRIER = _Piece((warp_barrier(),), ("bar.warp.sync 0xffffffff",))
_CLUSTER = _Piece(cluster_barrier(), ("barrier.cluster.arrive", "barrier.cluster.wait"))
_PROXY_FENCE = _Piece((TemplateEvent(Event.PROXY_FENCE, a=3),), ("fence.proxy.async",))
_INITS_FENCE = _Piece((TemplateEvent(Event.INITS_FENCE),), ("fence.mbarrier_init.release.cluster",))
_COMMIT = _Piece((TemplateEvent(Event.COPY_COMMIT),), ("cp.async.commit_group",))
_BULK_COMMIT = _Piece((TemplateEvent(Event.BULK_COMMIT),), ("cp.async.bulk.commit_group",))
_PRODUCT_COMMIT = _Piece((TemplateEvent(Event.PRODUCT_COMMIT),), ("wgmma.commit_group.sync.aligned",))
_TENSOR_BEFORE = _Piece((TemplateEvent(Event.TENSOR_FENCE, a=0),), ("tcgen05.fence::before_thread_sync",))
_TENSOR_AFTER = _Piece((TemplateEvent(Event.TENSOR_FENCE, a=1),), ("tcgen05.fence::after_thread_sync",))
_TENSOR_LD = _Piece((TemplateEvent(Event.TENSOR_WAIT, a=1),), ("tcgen05.wait::ld.sync.aligned",))
_TENSOR_ST = _Piece((TemplateEvent(Event.TENSOR_WAIT, a=2),), ("tcgen05.wait::st.sync.aligned",))
_FENCE = TemplateEvent(Event.FENCE, int(Flag.ACQUIRES | Flag.RELEASES), offset=_GPU_SCOPE | 7)
_GPU_FENCE = _Piece((_FENCE,), ("fence.sc.gpu",))


def _copy_wait(pending: int) -> _Piece:
    return _Piece((wait(Event.COPY_WAIT, pending),), (f"cp.async.wait_group {pending}",))


def _bulk_wait(pending: int, read: bool) -> _Piece:
    name = "cp.async.bulk.wait_group.read" if read else "cp.async.bulk.wait_group"
    return _Piece((wait(Event.BULK_WAIT, pending, int(Flag.READ_ONLY) if read else 0),), (f"{name} {pending}",))


def _product_wait(pending: int) -> _Piece:
    return _Piece((wait(Event.PRODUCT_WAIT, pending),), (f"wgmma.wait_group.sync.aligned {pending}",))


# Of each kind of group: its commit, its wait, and what may be added.
_GROUPS: dict[Event, tuple[_Piece, Callable[[int], tuple[_Piece, ...]]]] = {
    Event.COPY_WAIT: (_COMMIT, lambda pending: (_copy_wait(pending),)),
    Event.BULK_WAIT: (_BULK_COMMIT, lambda pending: (_bulk_wait(pending, True), _bulk_wait(pending, False))),
    Event.PRODUCT_WAIT: (_PRODUCT_COMMIT, lambda pending: (_product_wait(pending),)),
}
_COMMITS = {Event.COPY_WAIT: Event.COPY_COMMIT, Event.BULK_WAIT: Event.BULK_COMMIT, Event.PRODUCT_WAIT: Event.PRODUCT_COMMIT}
_WAIT_OF = {0: Event.COPY_WAIT, InFlight.BULK_STORE: Event.BULK_WAIT, InFlight.WGMMA: Event.PRODUCT_WAIT}
_BY_PHASE = (InFlight.BULK_LOAD, InFlight.STORE_ASYNC)
_SCOPED = (Event.MBARRIER_ARRIVE, Event.MBARRIER_WAIT, Event.ATOMIC, Event.READ, Event.WRITE, Event.FENCE)
_RELAXED = (Event.MBARRIER_ARRIVE, Event.MBARRIER_WAIT, Event.CLUSTER_ARRIVE)
_FLAGS = (Event.OBSERVE, Event.PUBLISH, Event.FENCE)
_SUPERFLUOUS = (Reason.TOO_MANY_ARRIVALS, Reason.INITIALISED_TWICE)
_MEETINGS = (Event.BARRIER, Event.CLUSTER_ARRIVE, Event.MBARRIER_ARRIVE, Event.WARP_BARRIER)

_Alter = Callable[[TemplateEvent], TemplateEvent]


def _tighter(pending: int, event: TemplateEvent) -> TemplateEvent:
    return replace(event, a=min(event.a, pending)) if event.a_word < 0 else event


def _counted(step: int, event: TemplateEvent) -> TemplateEvent:
    return replace(event, a=event.a + step)


def _flipped(event: TemplateEvent) -> TemplateEvent:
    """The other parity: that of a word is the sum of both."""
    return replace(event, a=event.a ^ 1)


def _of_gpu_scope(event: TemplateEvent) -> TemplateEvent:
    return replace(event, offset=event.offset & ~_SCOPE_BITS | max(event.offset & _SCOPE_BITS, _GPU_SCOPE))


def _without(flag: Flag) -> _Alter:
    return lambda event: replace(event, flags=event.flags & ~int(flag))


class Repairs:
    """The repairs of one finding, in the order in which they are tried."""

    def __init__(self, questions: Questions, record: Any) -> None:
        self._questions, self._places, self._record = questions, questions.places, record
        self._clusters = math.prod(questions.launched.cluster) > 1
        sites = sorted({int(record["site"]), int(record["other_site"])} - {0})
        self._sites = [site for site in sites if self._places.statement(site)]
        self._kind, self._reason = Kind(int(record["kind"])), Reason(int(record["reason"]))

    def __iter__(self) -> Iterator[Repair]:
        seen: set[tuple[RepairStep, ...]] = set()
        for repair in self._all():
            if repair.change and repair.steps not in seen:
                seen.add(repair.steps)
                yield repair

    def _all(self) -> Iterator[Repair]:
        if self._sites:
            yield from _BY_KIND.get(self._kind, Repairs._nothing)(self)

    def _nothing(self) -> Iterator[Repair]:
        return iter(())

    # -- kinds of findings ---------------------------------------------------------------------------------------------------

    def _race(self) -> Iterator[Repair]:
        if self._record["flags"] & FindingFlags.SAME_WARP:
            yield from self._at_accesses(_WARP_BARRIER)
        yield from self._moved_across(Event.BARRIER, "bar.sync 0")
        yield from self._parities()
        yield from self._at_accesses(_BARRIER)
        yield from self._scopes()
        yield from self._counts()
        if self._clusters:
            yield from self._at_accesses(_CLUSTER)
        yield from self._between(_BARRIER)

    def _wait(self) -> Iterator[Repair]:
        kind = _WAIT_OF.get(InFlight(self._operation) if self._operation else 0)
        yield from self._groups(kind) if kind else ()
        yield from self._parities()
        yield from self._race()
        yield from self._phase_waits()
        if kind:
            commit, waits = _GROUPS[kind]
            for each in waits(0):
                for piece in (each + _BARRIER, commit + each, commit + each + _BARRIER):
                    yield from self._at_accesses(piece)
                    yield from self._between(piece)
        for piece in (_TENSOR_LD, _TENSOR_ST) if self._operation >= InFlight.TCGEN05_MMA else ():
            for each in (piece, piece + _BARRIER):
                yield from self._at_accesses(each)
                yield from self._before_meetings(each)

    def _fence(self) -> Iterator[Repair]:
        yield from self._moved_across(Event.PROXY_FENCE, "fence.proxy.async", over=_MEETINGS)
        yield self._add(self._sites[0], _PROXY_FENCE, after=True)  # by the writers
        yield from self._before_meetings(_PROXY_FENCE)
        yield from self._at_accesses(_PROXY_FENCE)
        for piece in (_PROXY_FENCE + _BARRIER, _BARRIER + _PROXY_FENCE):
            yield from self._at_accesses(piece)
            yield from self._between(piece)

    def _tensor_fence(self) -> Iterator[Repair]:
        for piece in (_TENSOR_BEFORE, _TENSOR_AFTER):
            yield from self._at_accesses(piece)
            yield from self._before_meetings(piece)
            yield from self._after_meetings(piece)

    def _misuse(self) -> Iterator[Repair]:
        yield from self._parities()
        yield from self._counts()
        yield from self._scopes()
        yield from self._at_accesses(_BARRIER)
        yield from self._between(_BARRIER)
        yield from self._at_accesses(_WARP_BARRIER)
        if self._clusters:
            for piece in (_CLUSTER, _INITS_FENCE, _INITS_FENCE + _CLUSTER):
                yield from self._at_accesses(piece)
        if self._reason in _SUPERFLUOUS:
            yield from map(self._without, self._sites)

    def _lifetime(self) -> Iterator[Repair]:
        kind = _WAIT_OF.get(InFlight(self._own_operation) if self._own_operation else 0)
        if self._reason is Reason.EXIT and kind:
            yield from self._groups(kind)
            commit, waits = _GROUPS[kind]
            for each in waits(0):
                yield from self._at_accesses(commit + each)
        if self._reason is Reason.EXIT:
            yield from self._phase_waits()
        if self._clusters:
            yield from self._at_accesses(_CLUSTER)
            yield from self._between(_CLUSTER, everywhere=True)

    def _global(self) -> Iterator[Repair]:
        yield from self._scopes()
        yield from self._at_accesses(_BARRIER)
        yield from self._between(_GPU_FENCE, everywhere=True)
        yield from self._between(_BARRIER)

    # -- forms ---------------------------------------------------------------------------------------------------------------

    @property
    def _operation(self) -> int:
        return int(self._record["operation"])

    @property
    def _own_operation(self) -> int:
        return int(self._record["own_operation"])

    def _statements(self) -> list[tuple[int, Statement]]:
        found = ((site, self._places.statement(site)) for site in self._sites)
        return [(site, statement) for site, statement in found if statement is not None]

    def _is_whole(self, site: int) -> bool:
        return self._places.is_entered_once(site, self._questions.walked.pairs)

    def _add(self, site: int, piece: _Piece, *, after: bool, whole: bool | None = None) -> Repair:
        whole = self._is_whole(site) if whole is None else whole
        where = "after" if after else "before"
        steps = tuple(RepairStep("add", instruction, where, site, whole) for instruction in piece.instructions)
        return Repair(steps, self._places.added(self._places.alike(site, whole=whole), piece.events, after=after))

    def _at_accesses(self, piece: _Piece) -> Iterator[Repair]:
        """Between the accesses as the text has them; then, for loops, around them."""
        first, last = self._sites[0], self._sites[-1]
        for whole in (True, False):
            for site, after in ((last, False), (first, True), (first, False), (last, True)):
                if not whole or self._is_whole(site):
                    yield self._add(site, piece, after=after, whole=whole)

    def _between(self, piece: _Piece, *, everywhere: bool = False) -> Iterator[Repair]:
        """At other statements: those between the accesses, or all of the kernel."""
        functions = {statement.function for _, statement in self._statements()}
        low, high = self._sites[0], self._sites[-1]
        firsts: dict[Statement, int] = {}
        for number, site in self._places.sites.items():
            statement = self._places.statement(number)
            if statement and site.function in functions and (everywhere or low == high or low < number < high):
                firsts.setdefault(statement, number)
        for number in firsts.values():
            yield self._add(number, piece, after=False)
            yield self._add(number, piece, after=True)

    def _meetings(self) -> list[int]:
        """A site of each statement where threads meet or signal."""
        found = self._places.by_statement(lambda event: event.kind in _MEETINGS)
        functions = {statement.function for _, statement in self._statements()}
        return [self._places[spots[0]].site for statement, spots in found.items() if statement.function in functions]

    def _before_meetings(self, piece: _Piece) -> Iterator[Repair]:
        for site in self._meetings():
            yield self._add(site, piece, after=False)

    def _after_meetings(self, piece: _Piece) -> Iterator[Repair]:
        for site in self._meetings():
            yield self._add(site, piece, after=True)

    def _altered(
        self, kinds: Iterable[Event], alter: Callable[[TemplateEvent], TemplateEvent], words: Callable[[TemplateEvent], str]
    ) -> Iterator[Repair]:
        """Other operands, at one statement at a time."""
        wanted = set(kinds)
        for spots in self._places.by_statement(lambda event: event.kind in wanted).values():
            event = self._places[spots[0]]
            change = self._places.altered(spots, alter)
            if change:
                yield Repair((RepairStep("alter", words(alter(event)), "at", event.site),), change)

    def _opcode(self, event: TemplateEvent) -> str:
        return self._places.sites[event.site].opcode

    def _groups(self, kind: Event) -> Iterator[Repair]:
        """A wait for fewer groups in flight; a wait moved across a barrier; one more wait."""
        for pending in range(self._pending(kind), -1, -1):
            yield from self._altered((kind,), functools.partial(_tighter, pending), lambda event: f"{self._opcode(event)} {event.a}")
        if kind is Event.BULK_WAIT:
            yield from self._altered((kind,), _without(Flag.READ_ONLY), lambda event: f"cp.async.bulk.wait_group {event.a}")
        yield from self._moved_across(kind, "")
        yield from self._moved_across(_COMMITS[kind], "", over=(kind,))
        commit, waits = _GROUPS[kind]
        for pending in sorted({self._left_over(), 0}, reverse=True):
            for piece in waits(pending):
                yield from self._before_meetings(piece)
                yield from self._at_accesses(piece)
        yield from self._at_accesses(commit)
        for piece in waits(0):
            yield from self._before_meetings(commit + piece)

    def _pending(self, kind: Event) -> int:
        """The most groups that a wait of the kernel leaves in flight, and one less."""
        waits = [self._places[spot].a for spot in self._places.spots(lambda event: event.kind == kind and event.a_word < 0)]
        return min(max(waits, default=0) - 1, 7)

    def _left_over(self) -> int:
        """The groups after that of the operation: a wait may leave these in flight."""
        group, commits = int(self._record["group"]), int(self._record["commits"])
        return commits - group - 1 if 0 <= group < commits and commits - group <= 8 else 0

    def _moved_across(self, kind: Event, words: str, over: tuple[Event, ...] = (Event.BARRIER,)) -> Iterator[Repair]:
        if kind in over:
            return
        for spots in self._places.by_statement(lambda event: event.kind == kind).values():
            event = self._places[spots[0]]
            for after in (False, True):
                change = self._places.moved(spots, lambda other: other.kind in over, after=after)
                target = next((spot for spot in change if spot not in spots), None)
                if target is not None:
                    step = RepairStep("move", words or self._opcode(event), "after" if after else "before", self._places[target].site)
                    yield Repair((step,), change)

    def _parities(self) -> Iterator[Repair]:
        yield from self._altered((Event.MBARRIER_WAIT,), _flipped, lambda event: f"{self._opcode(event)} with the other parity")

    def _counts(self) -> Iterator[Repair]:
        for step, words in ((1, "more"), (-1, "less")):
            yield from self._altered((Event.MBARRIER_INIT,), functools.partial(_counted, step), functools.partial(self._with_count, words))

    def _with_count(self, words: str, event: TemplateEvent) -> str:
        return f"{self._opcode(event)} with a count of one {words}"

    def _scopes(self) -> Iterator[Repair]:
        wider = "of a wider scope"
        yield from self._altered(_SCOPED, _without(Flag.NARROW), lambda event: f"{self._opcode(event)} {wider} (.cluster)")
        yield from self._altered(_RELAXED, _without(Flag.RELAXED), lambda event: self._opcode(event).replace(".relaxed", ""))
        if self._kind is Kind.GLOBAL_RACE:
            yield from self._altered(_FLAGS, _of_gpu_scope, lambda event: f"{self._opcode(event)} {wider} (.gpu)")

    def _phase_waits(self) -> Iterator[Repair]:
        """A wait for the phase of an mbarrier, whose place the finding tells."""
        if not self._record["place"]:
            return
        for parity in (0, 1):
            event = TemplateEvent(Event.MBARRIER_WAIT, offset=self._questions.launch.window()[0] + int(self._record["place"]) - 1, a=parity)
            piece = _Piece((event,), (f"mbarrier.try_wait.parity of parity {parity}",))
            yield from self._at_accesses(piece)
            yield from self._at_accesses(piece + _BARRIER)

    def _without(self, site: int) -> Repair:
        statement = self._places.statement(site)
        spots = self._places.spots(lambda event: self._places.statement(event.site) == statement)
        return Repair((RepairStep("leave-out", self._places.sites[site].opcode, "at", site),), self._places.left_out(spots))


_BY_KIND: dict[Kind, Callable[[Repairs], Iterator[Repair]]] = {
    Kind.DATA_RACE: Repairs._race,
    Kind.SCOPE: Repairs._race,
    Kind.UNINITIALIZED_READ: Repairs._race,
    Kind.MISSING_WAIT: Repairs._wait,
    Kind.MISSING_PROXY_FENCE: Repairs._fence,
    Kind.MISSING_TENSOR_FENCE: Repairs._tensor_fence,
    Kind.BARRIER_MISUSE: Repairs._misuse,
    Kind.LIFETIME: Repairs._lifetime,
    Kind.GLOBAL_RACE: Repairs._global,
}
