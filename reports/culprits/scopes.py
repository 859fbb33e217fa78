"""Finds the instruction whose scope is too narrow for an edge between two CTAs."""

from __future__ import annotations

from collections.abc import Callable

from consan.instrument.relations import SyncPoint
from consan.reports.culprits.cases import Case, Culprit, is_arrival, is_phase_wait, last_of, last_wrong


def of_cta_scope(points: str, chosen: Callable[[SyncPoint], bool]) -> Callable[[Case], Culprit]:
    """Make a finder: the instruction that makes the edge, if its scope is .cta."""
    return last_wrong(points, chosen, lambda point: point.is_of_cta)


def released_at_cta(case: Case) -> Culprit:
    """The arrival that makes the edge, if its scope is .cta, and whether the wait has the scope of the cluster."""
    arrival = of_cta_scope("after_first", is_arrival)(case)
    wait = last_of(case.around.before_second, is_phase_wait)
    enough = wait is not None and not wait.is_of_cta
    return (arrival, {"acquire_too": "" if enough else ", and .acquire.cluster on the wait"}) if isinstance(arrival, SyncPoint) else None


def narrow_fence(points: str) -> Callable[[Case], Culprit]:
    """Make a finder: the last fence, if its scope is .cta. An arrival or wait of .cta scope is looked for before."""
    return last_wrong(points, lambda point: point.row.is_fence, lambda point: point.is_of_cta)
