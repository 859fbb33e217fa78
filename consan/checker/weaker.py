"""Weaker forms of a statement that may serve: a wait that leaves more in flight, a barrier of fewer threads, a fence by the issuer alone.

Each is a change, and the words for it. The replay decides which is the weakest that serves (advice.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from consan.checker.changes import Change, Spot
from consan.checker.pieces import PROXY_FENCE, WARP_BARRIER
from consan.checker.questions import AskedLaunches
from consan.instrument.record.templates import Event, Flag, TemplateEvent

Weaker = tuple[str, Change]
_MOST_PENDING = 7
_ISSUES = (Event.BULK_STORE, Event.TENSOR_STORE)
_SCOPES, _SYS, _GPU = 3 << 4, 3 << 4, 2 << 4


def weaker(questions: AskedLaunches, spots: list[Spot]) -> Iterator[Iterator[Weaker]]:
    """Chains of forms, each weaker than the one before: if one does not serve, those after it do not."""
    event = questions.places[spots[0]]
    for forms in _FORMS.get(Event(event.kind), ()):
        yield forms(questions, spots, event)


def _looser(questions: AskedLaunches, spots: list[Spot], event: TemplateEvent) -> Iterator[Weaker]:
    """A wait that leaves more groups in flight."""
    if any(questions.places[spot].a_word >= 0 for spot in spots):
        return
    for pending in range(event.a + 1, event.a + 1 + _MOST_PENDING):
        step = pending - event.a
        change = questions.places.altered(spots, lambda each, step=step: replace(each, a=each.a + step))  # type: ignore[misc]
        yield f"{_opcode(questions, event)} {pending} serves", change


def _of_sources(questions: AskedLaunches, spots: list[Spot], event: TemplateEvent) -> Iterator[Weaker]:
    """A wait for the sources of bulk copies only."""
    if not event.flags & Flag.READ_ONLY:
        change = questions.places.altered(spots, lambda each: replace(each, flags=each.flags | int(Flag.READ_ONLY)))
        yield f"{_opcode(questions, event)}.read {event.a} serves", change


def _by_issuer(questions: AskedLaunches, spots: list[Spot], event: TemplateEvent) -> Iterator[Weaker]:
    """A proxy fence of fewer threads: those that issue the copies."""
    places, walked = questions.places, questions.walked
    copies = [spot for spot in places.spots(lambda each: each.kind in _ISSUES) if walked.executions(spot)]
    if copies and _ran(walked.executions, copies) < _ran(walked.executions, spots):
        added = {spot: (*PROXY_FENCE, places[spot]) for spot in copies if spot not in spots}
        yield "one by the thread that issues the copy, right before it, serves", {**places.left_out(spots), **added}


def _of_fewer(questions: AskedLaunches, spots: list[Spot], event: TemplateEvent) -> Iterator[Weaker]:
    """A barrier of the CTA that could be one of each warpgroup, or of each warp."""
    if event.a_word >= 0 or event.b_word >= 0 or event.b != -1 or len(questions.blocks) > 1:
        return
    threads = math.prod(next(iter(questions.blocks)))
    if threads > 128 and threads % 128 == 0:
        grouped = questions.places.altered(spots, lambda each: replace(each, flags=each.flags | int(Flag.WARPGROUP)))
        yield "one of each warpgroup serves (a named barrier of 128 threads)", grouped
    if threads > 32:
        own = {spot: (replace(WARP_BARRIER[0], site=questions.places[spot].site),) for spot in spots}
        yield "one of each warp serves (bar.warp.sync)", own


def _of_gpu_scope(questions: AskedLaunches, spots: list[Spot], event: TemplateEvent) -> Iterator[Weaker]:
    """A fence for the system that could be one for the GPU. The record holds nothing of the host or of another GPU."""
    if event.offset & _SCOPES == _SYS:
        change = questions.places.altered(spots, lambda each: replace(each, offset=each.offset & ~_SCOPES | _GPU))
        yield "scope .gpu serves, if nothing outside the GPU takes part", change


def _opcode(questions: AskedLaunches, event: TemplateEvent) -> str:
    return questions.places.sites[event.site].opcode


def _ran(executions: Callable[[Spot], int], spots: Iterable[Spot]) -> int:
    return sum(map(executions, spots))


_FORMS = {
    Event.COPY_WAIT: (_looser,),
    Event.BULK_WAIT: (_looser, _of_sources),
    Event.PRODUCT_WAIT: (_looser,),
    Event.PROXY_FENCE: (_by_issuer,),
    Event.BARRIER: (_of_fewer,),
    Event.FENCE: (_of_gpu_scope,),
}
