"""The comparison of the launches of ranks, and the calls of their hosts that order them (consan/session/comparing/rank_launches.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from consan.ranks.crew import Crew
from consan.session.comparing.rank_launches import RankLaunches


def order_of(crew: Crew, session: Any, *, needed: bool = False) -> RankLaunches | None:
    """The comparison of the launches of a crew; None where its ranks share no memory that is looked at, if it is not `needed`."""
    if crew.order is None and (crew.memory.own or needed) and session.options.looks_at_global:
        session.recording.accesses.wanted, crew.order = True, RankLaunches(session.comparisons, crew.count)
    return crew.order if isinstance(crew.order, RankLaunches) else None


def meets(
    crew: Crew, what: str, given: Any, among: Sequence[int], *, sends: bool = True, receives: bool = True, later: bool = False
) -> tuple[list[Any], Callable[[], None]]:
    """A collective of some ranks: what each has given, and a call for the rank that runs.

    From that call on its launches come behind what those that send have launched before the collective. It is for a rank that `receives`.
    `later`: the call is made later or never.
    """
    if len(among) == crew.count and sends and receives and not later:
        return crew.meet(what, given), lambda: None
    me = crew.rank
    found = crew.meet(what, (given, crew.order.sent(me) if sends and crew.order is not None else None), among, orders=False)

    def wait() -> None:
        for rank, (_, sent) in zip(among, found, strict=True):
            if receives and rank != me and sent is not None and crew.order is not None:
                crew.order.received(me, sent)

    return [value for value, _ in found], wait
