"""The oracle's verdict on a trace: several runs of the checker, which differ in what they take for a thread or an edge.

Severity: a pair is a warning if both stored the same value. A pair that is ordered once each warp counts as one thread, and lacks a proxy
fence then, lacks both: it may be called a data-race or a missing-proxy-fence.

In a cluster further ones: a race that is none where all scopes are wide is a `scope` (a warning, if the waits' alone would do), and in the
order of execution, in which a relaxed barrier counts, each CTA must be there while its shared memory is in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt
from oracle_checker import Cluster
from oracle_grid import check_globals
from oracle_order import Order, order
from oracle_pairs import Shape
from oracle_scopes import EXECUTION, SCOPES, WAIT_SCOPES
from oracle_trace import GLOBAL_EVENTS, Event, Trace, cut
from oracle_verdict import LIFETIME, PROXY, RACE, SCOPE, Found, Verdict

Array = npt.NDArray[Any]
Part = tuple[Event, Array]
_PROXY_EVENTS = frozenset(("bulk", "product"))


def exact(trace: Trace, *, ctas: int = 16) -> Verdict:
    """All that nothing orders: the first of what `check` puts together, and all of it but severity and scopes."""
    return _check(trace, ctas, by_warp=False)


def holds_for_covered(verdict: Verdict) -> bool:
    """Whether a run that this one covers (`Order.covers`), of which this is the exact verdict, has nothing that is not in it.

    More edges leave fewer pairs unordered, and fewer operations that nobody has observed. But a pair of accesses that they do order
    may lack a proxy fence then, or be an uninitialised read. Warnings of the exact verdict are no such pairs: stores of one value, or
    a store after its warp's own wait for a product.
    """
    return verdict.clean_but(lambda found: found.kinds <= {LIFETIME})


def check(trace: Trace, *, ctas: int = 16, merged: bool = True) -> Verdict:
    """The verdict over a launch, from at most so many CTAs of each wave; `merged`: with that of the bound of merged lanes.

    Global memory is looked at, over all CTAs, if all its accesses have been recorded.
    """
    verdict = _check_shared(trace, ctas, merged=merged)
    if trace.global_memory:
        others = check_globals(trace)
        for one in (verdict, verdict.merged):
            if one is not None:
                one.merge(others)
    return verdict


def _check_shared(trace: Trace, ctas: int, *, merged: bool) -> Verdict:
    verdict = exact(trace, ctas=ctas)
    if not merged and verdict.clean and not verdict.pairs and not _has_clusters(trace):
        return verdict
    coarse = _check(trace, ctas, by_warp=True)
    others = [coarse]
    if merged:
        verdict.merged = _check(trace, ctas, by_warp=True, merged=True)
        others.append(verdict.merged)
    if _has_clusters(trace):
        _name_scopes(verdict, trace, ctas, by_warp=False)
        if verdict.merged is not None:
            _name_scopes(verdict.merged, trace, ctas, by_warp=True, merged=True)
        verdict.merge(_lifetimes(trace, ctas, by_warp=False))
        for other in others:
            other.merge(_lifetimes(trace, ctas, by_warp=True))
    for pair, found in verdict.pairs.items():
        wide = coarse.pairs.get(pair, Found())
        found.kinds |= wide.kinds & {PROXY}
    return verdict


def alone(trace: Trace, *, ctas: int = 16) -> Iterator[Trace]:
    """The events of each CTA, or cluster, that `check` looks at, as traces of their own."""
    for wave, events in trace.waves:
        shape = Shape(wave.shape.threads, wave.cluster_size)
        for number in range(min(max(1, ctas // shape.ctas), wave.shape.clusters)):
            own = (cut(event, event.lanes // shape.lanes == number) for event in events if event.kind not in GLOBAL_EVENTS)
            yield Trace([(wave, [event for event in own if len(event.lanes)])])


def order_of(trace: Trace) -> Order | None:
    """The order of the one CTA in a trace (oracle_order.py)."""
    ((wave, events),) = trace.waves
    if wave.cluster_size > 1 or not events:
        return None
    return order(wave.shape.threads, int(wave.cta_of[events[0].lanes[0]]), events)


def _has_clusters(trace: Trace) -> bool:
    return any(wave.cluster_size > 1 for wave, _ in trace.waves)


def _name_scopes(verdict: Verdict, trace: Trace, ctas: int, **how: bool) -> None:
    """Races that lack nothing but a scope, or a proxy fence besides."""
    races = {pair: found for pair, found in verdict.pairs.items() if RACE in found.kinds}
    if not races:
        return
    wide, waits = (_check(trace, ctas, level=level, **how).pairs for level in (SCOPES, WAIT_SCOPES))
    for pair, found in races.items():
        left = wide.get(pair, Found())
        if left.count < found.count or RACE not in left.kinds:
            found.kinds |= {SCOPE} | (left.kinds & {PROXY})
        if RACE not in left.kinds and found.kinds == {RACE, SCOPE}:
            found.kinds = {SCOPE}
        if pair not in waits:
            found.severity = "warning"


def _lifetimes(trace: Trace, ctas: int, **how: bool) -> Verdict:
    found = _check(trace, ctas, level=EXECUTION, **how)
    return Verdict({pair: Found({LIFETIME}, it.severity, it.count, it.spans) for pair, it in found.pairs.items() if LIFETIME in it.kinds})


def _check(trace: Trace, ctas: int, **how: Any) -> Verdict:
    verdict = Verdict()
    for wave, events in trace.waves:
        shape = Shape(wave.shape.threads, wave.cluster_size)
        settings = {"proxies": any(event.kind in _PROXY_EVENTS for event in events), "homes": _homes(shape, events), **how}
        for number in range(min(max(1, ctas // shape.ctas), wave.shape.clusters)):
            one = Cluster(shape, number, **settings)
            own = (cut(event, event.lanes // shape.lanes == number) for event in events if event.kind not in GLOBAL_EVENTS)
            parts = [(event, shape.numbers(event.lanes)) for event in own if len(event.lanes)]
            for event, threads in parts:
                one.handle(event, threads)
            verdict.merge(one.finish())
    return verdict


def _homes(shape: Shape, events: list[Event]) -> int:
    """The CTAs for which proxy fences are kept apart: all, if there is a fence for one's own CTA only (D3)."""
    return shape.ctas if any(event.kind == "fence" and "shared::cta" in event.data["parts"] for event in events) else 1
