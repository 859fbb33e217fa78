"""Copies without a commit of their own that a later `cp.async.wait_all` covers: it commits what is open (ISA "cp.async.wait_all")."""

from __future__ import annotations

from consan.instrument.relations import Relations
from consan.reports.model import Finding
from consan.reports.words.ordering import Pair


def of_implied_commit(finding: Finding, pair: Pair, situation: str | None, relations: Relations | None) -> str | None:
    """The situation. A copy whose thread comes to a wait for all lacks no commit: the wait is late, or serves its own thread only."""
    first, second = pair
    if situation != "not-committed" or relations is None or first is None or second is None or finding.barrier:
        return situation
    around = relations.stretches(first, second, (finding.accesses[0].thread, finding.accesses[-1].thread))
    waits = [point for point in around.after_first if point.row.waits_for_groups] if around is not None else []
    is_copy = (operation := finding.accesses[0].asynchronous) is not None and operation.kind == "cp.async"
    return "not-waited" if is_copy and waits and waits[0].number is None else situation
