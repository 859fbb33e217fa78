"""A picture as data: lanes, events in order, edges, and the missing edge; and the same as a table (`steps`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from consan.dataclass import dataclass

THREAD, ENGINE, BARRIER, CTA = "thread", "engine", "barrier", "cta"  # the roles of lanes


@dataclass(frozen=True)
class Lane:
    """A thread, an asynchronous engine, a barrier or a CTA. `group` is its CTA, if they differ."""

    role: str
    title: str
    detail: str = ""
    group: str = ""


@dataclass(frozen=True)
class TimelineEvent:
    """A step on a lane. `kind`: access, flight, lands, wait, edge (an existing order), state, lifetime."""

    lane: int
    kind: str
    text: str
    mark: str = ""
    op: str = ""
    place: str = ""


@dataclass(frozen=True)
class LaneInterval:
    """An interval on a lane between two events. Without the second event it has no end."""

    lane: int
    first: int
    last: int | None


@dataclass(frozen=True)
class Edge:
    """Event `source` comes before event `target`. A missing edge is one that the program lacks."""

    source: int
    target: int
    label: str
    missing: bool = False


@dataclass(frozen=True)
class Cell:
    """A part of a memory strip. `kind`: inside, unwritten, hit, outside."""

    kind: str
    text: str
    mark: str = ""


# A word for each kind of cell.
MEMORY_WORDS: Final = {"inside": "allocated", "unwritten": "never written", "hit": "loaded", "outside": "outside"}


@dataclass(frozen=True)
class Timeline:
    """The picture. `gap` is the index of the event before which the missing operation belongs (the number of events: at the end).

    `culprits` are instructions in the gap that do not order: (what, place). They are not events, because their time is unknown.
    """

    caption: str
    lanes: tuple[Lane, ...]
    events: tuple[TimelineEvent, ...]
    spans: tuple[LaneInterval, ...] = ()
    edges: tuple[Edge, ...] = ()
    missing: str = ""
    gap: int = 0
    strip: tuple[Cell, ...] = ()
    culprits: tuple[tuple[str, str], ...] = ()
    blame: str = "does not order them"  # what is said of each culprit


@dataclass(frozen=True)
class TimelineRow:
    """A row of the table that describes the picture."""

    number: str
    who: str
    what: str
    where: str
    after: str
    missing: bool = False


def steps(timeline: Timeline) -> Iterator[TimelineRow]:
    """The events in order, each with its predecessors, and the missing edge in its place."""
    for number, event in enumerate(timeline.events):
        if timeline.gap == number:
            yield from _gap_steps(timeline)
        lane = timeline.lanes[event.lane]
        what = " ".join(filter(None, (event.mark, event.text, event.op)))
        after = "; ".join(_after(edge) for edge in timeline.edges if edge.target == number)
        who = ", ".join(filter(None, (lane.title, lane.detail, lane.group)))
        yield TimelineRow(str(number + 1), who, what, event.place, after)
    if timeline.gap >= len(timeline.events):
        yield from _gap_steps(timeline)


def _after(edge: Edge) -> str:
    label = f" ({edge.label})" if edge.label else ""
    return f"not ordered after step {edge.source + 1}" if edge.missing else f"step {edge.source + 1}{label}"


def _gap_steps(timeline: Timeline) -> Iterator[TimelineRow]:
    if timeline.missing:
        yield TimelineRow("", "missing", timeline.missing, "", "", missing=True)
    for what, where in timeline.culprits:
        yield TimelineRow("", timeline.blame, what, where, "")
