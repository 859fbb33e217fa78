"""What compares launches of the ranks of a crew, and what their hosts do (consan/session/comparing/rank_launches.py)."""

from __future__ import annotations

from typing import Any

from consan.ranks.crew import Crew
from consan.session.comparing.rank_launches import RankLaunches


def order_of(crew: Crew, session: Any) -> RankLaunches | None:
    """It, if the ranks share memory that is looked at."""
    if crew.order is None and crew.memory.own and session.options.looks_at_global:
        session.recording.accesses.wanted, crew.order = True, RankLaunches(session.comparisons, crew.count)
    return crew.order if isinstance(crew.order, RankLaunches) else None
