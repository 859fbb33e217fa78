"""A picture under construction: its lanes, events and edges, and the captions that all pictures share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

from consan.dataclass import dataclass
from consan.reports.catalogue.catalogue import entry_of
from consan.reports.catalogue.global_races import BETWEEN_LAUNCHES
from consan.reports.model import CULPRIT, Access, Finding
from consan.reports.timeline.picture import BARRIER, ENGINE, THREAD, Cell, Edge, Lane, LaneInterval, Timeline, TimelineEvent
from consan.reports.words.wording import place

# The agent that carries out an asynchronous operation: (title, its proxy).
_ENGINES: Final = {
    "cp.async": ("cp.async copies", "generic proxy"),
    "bulk load": ("bulk copy (TMA)", "async proxy"),
    "bulk store": ("bulk copy (TMA)", "async proxy"),
    "bulk copy": ("bulk copy (TMA)", "async proxy"),
    "wgmma": ("tensor core", "async proxy"),
    **dict.fromkeys(("tcgen05.mma", "tcgen05.cp", "tcgen05.shift"), ("tensor core", "async proxy")),
    **dict.fromkeys(("tcgen05.ld", "tcgen05.st"), ("tensor memory", "")),
    "st.async": ("async store", ""),
    "try_cancel": ("launch control", "async proxy"),
}


@dataclass
class Draft:
    """A timeline under construction. Lanes are created on demand, by key."""

    finding: Finding
    lanes: dict[Any, Lane] = field(default_factory=dict)
    events: list[TimelineEvent] = field(default_factory=list)
    spans: list[LaneInterval] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    gap: int | None = None

    def lane(self, key: Any, lane: Lane) -> int:
        """The number of a lane."""
        self.lanes.setdefault(key, lane)
        return list(self.lanes).index(key)

    def event(self, lane: int, kind: str, text: str, *, mark: str = "", op: str = "", place: str = "") -> int:
        """The number of a new event."""
        self.events.append(TimelineEvent(lane, kind, text, mark, op, place))
        return len(self.events) - 1

    def edge(self, source: int, target: int, label: str = "", *, missing: bool = False) -> None:
        """An edge between two events."""
        self.edges.append(Edge(source, target, label, missing))

    def open_gap(self) -> None:
        """The missing operation belongs here."""
        self.gap = len(self.events)

    def done(self, strip: tuple[Cell, ...] = ()) -> Timeline:
        """The picture."""
        gap = len(self.events) if self.gap is None else self.gap
        lanes, accesses = tuple(self.lanes.values()), self.finding.accesses
        culprits = tuple((f"{_mark(self.finding, each)} {each.op}", place(each)) for each in accesses if each.role == CULPRIT)
        drawn = tuple(self.events), tuple(self.spans), tuple(self.edges)
        blame = entry_of(self.finding.kind).blame or Timeline.blame
        return Timeline(_caption(self.finding), lanes, *drawn, self.finding.missing, gap, strip, culprits, blame)

    def thread_lane(self, access: Access) -> int:
        """The lane of the thread that executes an access. A hazard found in the kernel's text has no thread."""
        if self.finding.situation in BETWEEN_LAUNCHES:
            return self._launch_lane(access)
        if access.thread is None:
            return self.lane("program", Lane(THREAD, "the warp", "in program order"))
        warp = "" if access.warp is None else f"warp {access.warp}" + ("" if access.lane is None else f" lane {access.lane}")
        several = len({(side.rank, side.block) for side in self.finding.pair}) > 1 or access.cluster_rank is not None
        of_rank = "" if access.rank is None else f"rank {access.rank}, "
        group = f"{of_rank}CTA {triple(access.block)}" if several and access.block else ""
        return self.lane((access.rank, access.block, access.thread), Lane(THREAD, f"thread {triple(access.thread)}", warp, group))

    def _launch_lane(self, access: Access) -> int:
        """The lane of one of two launches, which may have threads of the same number, or of a framework's operation on arrays."""
        mark = _mark(self.finding, access)
        who = "an operation on arrays" if access.thread is None else f"thread {triple(access.thread)}"
        group = f"CTA {triple(access.block)}" if access.block else ""
        return self.lane(("launch", mark), Lane(THREAD, f"launch of {mark}", who, group))

    def engine_lane(self, access: Access) -> int:
        """The lane of the engine that carries out an asynchronous operation."""
        kind = access.asynchronous.kind if access.asynchronous else ""
        title, detail = _ENGINES.get(kind, (kind or "asynchronous operation", f"{access.proxy} proxy"))
        return self.lane(("engine", title), Lane(ENGINE, title, detail))

    def mbarrier_lane(self, offset: object, rank: object = None, name: object = "") -> int:
        """The lane of an mbarrier."""
        owner = "" if rank is None else f"CTA of rank {rank}"
        who = str(name or f"at offset {offset}")
        return self.lane(("mbarrier", offset, rank), Lane(BARRIER, "mbarrier", ", ".join(filter(None, (who, owner)))))

    def place_event(self, access: Access, lane: int, text: str = "") -> int:
        """The event of an access on a lane."""
        label = text or f"{access.role} {access.name.partition(', stage ')[0]}".rstrip()  # a lane is narrow: without the stage
        return self.event(lane, "access", label, mark=_mark(self.finding, access), op=access.op, place=place(access))

    def executed(self, access: Access) -> int:
        """The event of an access on the lane of its thread."""
        return self.place_event(access, self.thread_lane(access))

    def flight(self, access: Access) -> tuple[int, int]:
        """The issue of (1), and the operation on its engine: their events."""
        action = access.asynchronous
        group = f", group {action.group}" if action and action.group is not None else ""
        issued = self.executed(access)
        flying = self.event(self.engine_lane(access), "flight", f"in flight{group}")
        self.edge(issued, flying, "issues")
        return issued, flying

    def lands(self, access: Access, flying: int, text: str) -> int:
        """The completion of an operation and of the phase that tracks it: the event that a wait observes."""
        landed = self.event(self.events[flying].lane, "lands", text)
        self.spans.append(LaneInterval(self.events[flying].lane, flying, landed))
        action = access.asynchronous
        if action and action.barrier is not None:
            phase = "its phase" if action.phase is None else f"phase {action.phase}"
            lane = self.mbarrier_lane(action.barrier, (self.finding.barrier or {}).get("cluster_rank"), action.barrier_name)
            done = self.event(lane, "state", f"{phase} completes")
            self.edge(landed, done, "signals")
            return done
        return landed


def _caption(finding: Finding) -> str:
    kind = entry_of(finding.kind)
    return kind.captions.get(finding.situation, kind.caption)


def _mark(finding: Finding, access: Access) -> str:
    """The number of an access in the report's text."""
    return f"({next(n for n, each in enumerate(finding.accesses, 1) if each is access)})"


def triple(value: Sequence[int]) -> str:
    """`(1,0,0)`."""
    return f"({','.join(map(str, value))})"
