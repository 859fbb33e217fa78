"""The comparison of the launches of ranks, and the calls of their hosts that order them (consan/session/comparing/rank_launches.py)."""

from __future__ import annotations

from typing import Any

from consan.ranks.crew import Crew
from consan.session.comparing.rank_launches import RankLaunches


def order_of(crew: Crew, session: Any) -> RankLaunches | None:
    """The comparison of the launches of a crew; None where its ranks share no memory that is looked at."""
    if crew.order is None and crew.memory.own and session.options.looks_at_global:
        session.recording.accesses.wanted, crew.order = True, RankLaunches(session.comparisons, crew.count)
    return crew.order if isinstance(crew.order, RankLaunches) else None
