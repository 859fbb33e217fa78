"""The comparison of the launches of ranks, and the calls of their hosts that order them (consan/session/comparing/rank_launches.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from consan.ranks.crew import Crew
from consan.session.comparing.program_streams import ProgramStream
from consan.session.comparing.rank_launches import RankLaunches


def begin_order(crew: Crew, session: Any) -> None:
    """From now on each rank has streams of its own, and what they are given is compared."""
    session.streams.places.rank, crew.device_waits = (lambda: crew.rank), session.streams.synchronize
    if session.options.looks_at_global:
        crew.order = RankLaunches(session.comparisons, crew.count, session.streams)


def order_of(crew: Crew, session: Any) -> RankLaunches | None:
    """The comparison of the launches of a crew; None: global memory is not looked at. Accesses are kept once its ranks share memory."""
    if crew.order is not None and crew.memory.own:
        session.recording.accesses.wanted = True
    return crew.order if isinstance(crew.order, RankLaunches) else None


def meets(
    crew: Crew,
    stream: ProgramStream,
    what: str,
    given: Any = None,
    among: Sequence[int] = (),
    *,
    sends: bool = True,
    receives: bool = True,
) -> list[Any]:
    """A collective of some ranks, each in a stream of its own: what each of them has given.

    The stream of one that `receives` comes behind what those of all that send were given before.
    """
    found = crew.meet(what, (given, stream.record() if sends else None), among)
    for _, sent in found:
        if receives and sent is not None:
            stream.wait(sent)
    return [value for value, _ in found]


def hosts_meet(crew: Crew, what: str, given: Any = None, among: Sequence[int] = ()) -> list[Any]:
    """The hosts of some ranks meet: what one of them knows to be over is so for all. Gives what each has given."""
    order = crew.order
    found = crew.meet(what, (given, None if order is None else order.known_to_host(crew.rank)), among)
    for _, over in found:
        if order is not None:
            order.host_knows(over)
    return [value for value, _ in found]
