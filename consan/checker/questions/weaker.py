"""Weaker forms of a statement that may serve: a wait that leaves more in flight, a barrier of fewer threads, a fence by the issuer alone.

Each is a change, and the words for it. The replay decides which is the weakest that serves (advice.py).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from consan.checker.questions.changes import Change, Spot
from consan.checker.questions.pieces import PROXY_FENCE, WARP_BARRIER
from consan.checker.questions.questions import AskedLaunches
from consan.instrument import effects

Weaker = tuple[str, Change]
_MOST_PENDING = 7
_ISSUES = (effects.BulkStore, effects.TensorStore)
_SCOPES, _SYS, _GPU = 3 << 4, 3 << 4, 2 << 4


def weaker(questions: AskedLaunches, spots: list[Spot]) -> Iterator[Iterator[Weaker]]:
    """Chains of forms, each weaker than the one before: if one does not serve, those after it do not."""
    event = questions.places[spots[0]]
    for forms in _FORMS.get(type(event), ()):
        yield forms(questions, spots, event)


def _looser(questions: AskedLaunches, spots: list[Spot], event: Any) -> Iterator[Weaker]:
    """A wait that leaves more groups in flight."""
    if not all(_is_known(questions.places[spot]) for spot in spots):
        return
    least = event.pending.number
    for pending in range(least + 1, least + 1 + _MOST_PENDING):
        change = questions.places.altered(spots, functools.partial(_waiting_less, pending - least))
        yield f"{_opcode(questions, event)} {pending} serves", change


def _is_known(event: Any) -> bool:
    return bool(event.pending.is_known)


def _waiting_less(step: int, event: Any) -> Any:
    return event.changed(pending=event.pending.plus(step))


def _of_sources(questions: AskedLaunches, spots: list[Spot], event: Any) -> Iterator[Weaker]:
    """A wait for the sources of bulk copies only."""
    if not event.read_only:
        change = questions.places.altered(spots, lambda each: each.changed(read_only=True))
        yield f"{_opcode(questions, event)}.read {event.pending.number} serves", change


def _by_issuer(questions: AskedLaunches, spots: list[Spot], event: effects.Effect) -> Iterator[Weaker]:
    """A proxy fence of fewer threads: those that issue the copies."""
    places, walked = questions.places, questions.walked
    copies = [spot for spot in places.spots(lambda each: isinstance(each, _ISSUES)) if walked.executions(spot)]
    if copies and _ran(walked.executions, copies) < _ran(walked.executions, spots):
        added = {spot: (*PROXY_FENCE, places[spot]) for spot in copies if spot not in spots}
        yield "one by the thread that issues the copy, right before it, serves", {**places.left_out(spots), **added}


def _of_fewer(questions: AskedLaunches, spots: list[Spot], event: Any) -> Iterator[Weaker]:
    """A barrier of the CTA that could be one of each warpgroup, or of each warp."""
    if not event.id.is_known or event.threads != effects.ALL_THREADS or len(questions.blocks) > 1:
        return
    threads = math.prod(next(iter(questions.blocks)))
    if threads > 128 and threads % 128 == 0:
        grouped = questions.places.altered(spots, lambda each: each.changed(warpgroup=True))
        yield "one of each warpgroup serves (a named barrier of 128 threads)", grouped
    if threads > 32:
        own = {spot: (replace(WARP_BARRIER[0], site=questions.places[spot].site),) for spot in spots}
        yield "one of each warp serves (bar.warp.sync)", own


def _of_gpu_scope(questions: AskedLaunches, spots: list[Spot], event: Any) -> Iterator[Weaker]:
    """A fence for the system that could be one for the GPU. The log holds nothing of the host or of another GPU."""
    if event.order & _SCOPES == _SYS:
        change = questions.places.altered(spots, _narrower)
        yield "scope .gpu serves, if nothing outside the GPU takes part", change


def _narrower(event: Any) -> effects.Effect:
    narrower: effects.Effect = event.changed(order=event.order & ~_SCOPES | _GPU)
    return narrower


def _opcode(questions: AskedLaunches, event: effects.Effect) -> str:
    return questions.places.sites[event.site].opcode


def _ran(executions: Callable[[Spot], int], spots: Iterable[Spot]) -> int:
    return sum(map(executions, spots))


_FORMS: dict[type[effects.Effect], tuple[Callable[[AskedLaunches, list[Spot], Any], Iterator[Weaker]], ...]] = {
    effects.CopyWait: (_looser,),
    effects.BulkWait: (_looser, _of_sources),
    effects.ProductWait: (_looser,),
    effects.ProxyFence: (_by_issuer,),
    effects.CtaBarrier: (_of_fewer,),
    effects.Fence: (_of_gpu_scope,),
}
