"""Operations that lack no commit, though the run has seen them before it came."""

from __future__ import annotations

from typing import Final

from consan.instrument.relations import Relations
from consan.reports.culprits.cases import GROUPS
from consan.reports.model import Finding
from consan.reports.words.ordering import Pair

_UNCOMMITTED: Final = {"not-committed": "not-waited", "global-not-committed": "global-not-waited"}


def of_implied_commit(finding: Finding, pair: Pair, situation: str | None, relations: Relations | None) -> str | None:
    """The situation. A copy whose thread comes to a `cp.async.wait_all` lacks no commit, since that commits what is open (ISA
    "cp.async.wait_all"): the wait is late, or serves its own thread only. Nor does an operation with a commit behind it, if another warp is
    too early."""
    first, second = pair
    if situation not in _UNCOMMITTED or relations is None or first is None or second is None or finding.barrier:
        return situation
    one, other = finding.accesses[0], finding.accesses[-1]
    groups = GROUPS.get(one.asynchronous.kind, "") if one.asynchronous is not None else ""
    around = relations.stretches(first, second, (one.thread, other.thread)) if groups else None
    behind = around.after_first if around is not None else ()
    ends = [point for point in behind if point.row.completion == groups and (point.row.commits or point.row.waits_for_groups)]
    if not ends:
        return situation
    by_all = ends[0].row.waits_for_groups and ends[0].number is None
    by_own = ends[0].row.commits and (one.block, one.warp) != (other.block, other.warp)
    return _UNCOMMITTED[situation] if by_all or by_own else situation
