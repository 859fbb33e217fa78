"""What happened in a finding, as a picture: lanes, events in order, the edges between them, and the missing edge.

`build` turns a finding into a `Timeline`. `timeline_svg` and `timeline_text` draw it; `steps` gives the same as a table.
The picture shows only what the finding holds: who, where, which asynchronous operation, which barrier and phase, what is missing.
Time runs down. (1) and (2) are in the order of the finding's text; without an edge between them, either may come first.

A finding of an older stored run has no `situation`: its picture leaves out what only the situation tells (who waited, which exit).
Not drawn: durations (nothing is timed), and accesses that the finding does not name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from consan.reports.divergence import lanes_phrase
from consan.reports.kinds import place
from consan.reports.model import CULPRIT, Access, Finding, plural

MOST_WAITERS: Final = 3  # groups of waiting warps drawn; the facts of the finding list them all
MOST_BARRIERS: Final = 2

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


# What is said of a culprit where nothing is to be ordered.
_BLAMES: Final = {
    "deadlock": "does not end the wait",
    "uninitialized-read": "does not write these bytes",
    "lifetime": "does not wait for the operation",
    "barrier-misuse": "is to be repaired",
}


@dataclass(frozen=True)
class TimelineRow:
    """A row of the table that describes the picture."""

    number: str
    who: str
    what: str
    where: str
    after: str
    missing: bool = False


def build(finding: Finding) -> Timeline | None:
    """The picture of a finding. None if the finding names neither an access nor a waiter."""
    if not _sides(finding):
        return _waiting(finding) if finding.waiters else None
    return _SHAPES.get(finding.kind, _pair)(finding)


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


# --- drafting ----------------------------------------------------------------------------------------------------------


@dataclass
class _Draft:
    """A timeline under construction. Lanes are created on demand, by key."""

    finding: Finding
    lanes: dict[Any, Lane] = field(default_factory=dict)
    events: list[TimelineEvent] = field(default_factory=list)
    spans: list[LaneInterval] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    gap: int | None = None

    def lane(self, key: Any, lane: Lane) -> int:
        self.lanes.setdefault(key, lane)
        return list(self.lanes).index(key)

    def event(self, lane: int, kind: str, text: str, *, mark: str = "", op: str = "", place: str = "") -> int:
        self.events.append(TimelineEvent(lane, kind, text, mark, op, place))
        return len(self.events) - 1

    def edge(self, source: int, target: int, label: str = "", *, missing: bool = False) -> None:
        self.edges.append(Edge(source, target, label, missing))

    def open_gap(self) -> None:
        self.gap = len(self.events)

    def done(self, caption: str, strip: tuple[Cell, ...] = ()) -> Timeline:
        gap = len(self.events) if self.gap is None else self.gap
        lanes, accesses = tuple(self.lanes.values()), self.finding.accesses
        culprits = tuple((f"{_mark(self.finding, each)} {each.op}", place(each)) for each in accesses if each.role == CULPRIT)
        drawn = tuple(self.events), tuple(self.spans), tuple(self.edges)
        blame = _BLAMES.get(self.finding.kind, Timeline.blame)
        return Timeline(caption, lanes, *drawn, self.finding.missing, gap, strip, culprits, blame)


def _thread_lane(draft: _Draft, access: Access) -> int:
    """The lane of the thread that executes an access. A hazard found in the kernel's text has no thread."""
    if access.thread is None:
        return draft.lane("program", Lane(THREAD, "the warp", "in program order"))
    warp = "" if access.warp is None else f"warp {access.warp}" + ("" if access.lane is None else f" lane {access.lane}")
    several = len({side.block for side in _sides(draft.finding)}) > 1 or access.cluster_rank is not None
    group = f"CTA {_triple(access.block)}" if several and access.block else ""
    return draft.lane((access.block, access.thread), Lane(THREAD, f"thread {_triple(access.thread)}", warp, group))


# Who carries out an asynchronous operation: (title, its proxy).
_ENGINES: Final = {
    "cp.async": ("cp.async copies", "generic proxy"),
    "bulk load": ("bulk copy (TMA)", "async proxy"),
    "bulk store": ("bulk copy (TMA)", "async proxy"),
    "bulk copy": ("bulk copy (TMA)", "async proxy"),
    "wgmma": ("tensor core", "async proxy"),
    "st.async": ("async store", ""),
}


def _engine_lane(draft: _Draft, access: Access) -> int:
    kind = access.asynchronous.kind if access.asynchronous else ""
    title, detail = _ENGINES.get(kind, (kind or "asynchronous operation", f"{access.proxy} proxy"))
    return draft.lane(("engine", title), Lane(ENGINE, title, detail))


def _mbarrier_lane(draft: _Draft, offset: object, rank: object = None, name: object = "") -> int:
    owner = "" if rank is None else f"CTA of rank {rank}"
    who = str(name or f"at offset {offset}")
    return draft.lane(("mbarrier", offset, rank), Lane(BARRIER, "mbarrier", ", ".join(filter(None, (who, owner)))))


def _triple(value: Sequence[int]) -> str:
    return f"({','.join(map(str, value))})"


def _mark(finding: Finding, access: Access) -> str:
    """The number of an access in the report's text."""
    return f"({next(n for n, each in enumerate(finding.accesses, 1) if each is access)})"


def _place_event(draft: _Draft, access: Access, lane: int, kind: str = "access", text: str = "") -> int:
    told = text or f"{access.role} {access.name.partition(', stage ')[0]}".rstrip()  # a lane is narrow: without the stage
    return draft.event(lane, kind, told, mark=_mark(draft.finding, access), op=access.op, place=place(access))


def _sides(finding: Finding) -> list[Access]:
    return list(finding.pair)


def _flight(draft: _Draft, access: Access) -> tuple[int, int]:
    """The issue of (1), and the operation on its engine: their events."""
    action = access.asynchronous
    group = f", group {action.group}" if action and action.group is not None else ""
    issued = _place_event(draft, access, _thread_lane(draft, access))
    flying = draft.event(_engine_lane(draft, access), "flight", f"in flight{group}")
    draft.edge(issued, flying, "issues")
    return issued, flying


def _lands(draft: _Draft, access: Access, flying: int, text: str) -> int:
    """The completion of an operation and of the phase that tracks it: the event that a wait observes."""
    landed = draft.event(draft.events[flying].lane, "lands", text)
    draft.spans.append(LaneInterval(draft.events[flying].lane, flying, landed))
    action = access.asynchronous
    if action and action.barrier is not None:
        phase = "its phase" if action.phase is None else f"phase {action.phase}"
        lane = _mbarrier_lane(draft, action.barrier, (draft.finding.barrier or {}).get("cluster_rank"), action.barrier_name)
        done = draft.event(lane, "state", f"{phase} completes")
        draft.edge(landed, done, "signals")
        return done
    return landed


# --- two accesses ------------------------------------------------------------------------------------------------------

_CAPTIONS: Final = {
    "data-race": "Nothing orders (1) before (2): they can take effect in either order.",
    "global-race": "Nothing orders (1) before (2): they can take effect in either order.",
    "missing-wait": "The operation of (1) can still be in flight when (2) touches its bytes.",
    "missing-proxy-fence": "(1) and (2) are ordered, but no proxy fence makes one proxy see what the other did.",
    "scope": "An edge leads from (1) to (2), but its scope does not include both threads.",
    "register-hazard": "The warp and the tensor core use the same registers in no order.",
    "uninitialized-read": "Nothing has written the bytes that (1) loads.",
    "out-of-bounds": "(1) touches bytes outside of the memory.",
    "barrier-misuse": "The barrier is used against its protocol.",
    "deadlock": "Nobody who could complete the barrier can run: the threads wait for ever.",
    "deadlock/polled": "No thread is left that could write what the loop waits for: the threads poll for ever.",
    "deadlock/lock": "Nobody who is left releases the lock: the threads try for ever.",
    "deadlock/loop": "Nothing that is left can end the loop.",
    "deadlock/timeout": "The launch did not end in time: this is where its threads stood.",
    "lifetime": "Shared memory exists only while its CTA runs.",
}


def _caption(finding: Finding) -> str:
    special = _CAPTIONS.get(f"{finding.kind}/{finding.situation}")
    return special or _CAPTIONS.get(finding.kind, "What is known of the finding, in order.")


def _pair(finding: Finding) -> Timeline:
    """(1), what is missing, (2)."""
    draft, sides = _Draft(finding), _sides(finding)
    first, flying = _begin(draft, sides[0])
    waited = _waited(draft, sides, flying)
    draft.open_gap()
    if len(sides) > 1:
        second, flying_too = _begin(draft, sides[1])
        draft.edge(waited if waited is not None else first if flying is None else flying, second, missing=True)
        if flying is not None and waited is None:
            _lands(draft, sides[0], flying, "may end only now")
        if flying_too is not None:
            draft.spans.append(LaneInterval(draft.events[flying_too].lane, flying_too, None))
    return draft.done(_caption(finding))


def _begin(draft: _Draft, access: Access) -> tuple[int, int | None]:
    if access.asynchronous is None:
        return _place_event(draft, access, _thread_lane(draft, access)), None
    return _flight(draft, access)


# Waits implied by the situation: (whose, what). "issuer" and "second" are the threads of (1) and (2).
_WAITS: Final = {
    "waited-no-barrier": ("issuer", "waits for the end of (1)"),
    "waited-no-barrier:bulk load": ("another thread", "waits for the end of (1)"),
    "waited-no-barrier:st.async": ("another thread", "waits for the end of (1)"),
    "waited-no-barrier:wgmma": ("a warp of the warpgroup", "waits for the end of (1)"),
    "own-warp-waited": ("second", "waits, for its own warp only"),
    "other-lanes": ("another lane of the warp", "waits for the end of (1)"),
    "other-issuer": ("another thread", "waits, for its own operations only"),
    "read-wait-only": ("issuer", "waits (.read) for the reads of (1) only"),
}
_SERVES: Final = ("waited-no-barrier", "other-lanes")  # the wait has observed the completion of (1)


def _waited(draft: _Draft, sides: list[Access], flying: int | None) -> int | None:
    """The existing wait. Its event, if it observed the completion of (1): only an edge from it to (2) is missing then."""
    situation, action = draft.finding.situation.removeprefix("global-"), sides[0].asynchronous
    row = _WAITS.get(f"{situation}:{action.kind}" if action else "", _WAITS.get(situation))
    if row is None or flying is None or len(sides) < 2:
        return None
    who, text = row
    known = {"issuer": sides[0], "second": sides[1]}
    lane = _thread_lane(draft, known[who]) if who in known else draft.lane(who, Lane(THREAD, who))
    if situation not in _SERVES:
        draft.event(lane, "wait", text)
        return None
    landed = _lands(draft, sides[0], flying, "ends")
    wait = draft.event(lane, "wait", text)
    draft.edge(landed, wait, "seen by the wait")
    return wait


# --- proxies, scopes ---------------------------------------------------------------------------------------------------


def _proxy(finding: Finding) -> Timeline:
    """A lane for each proxy: the order exists, the fence between the proxies is missing."""
    draft, sides = _Draft(finding), _sides(finding)
    if len(sides) < 2:
        return _pair(finding)
    ordered = -1
    for index, access in enumerate(sides):
        name = "tensormap proxy" if index and "map-not" in finding.situation else f"{access.proxy} proxy"
        who = f"thread {_triple(access.thread)}" if access.thread else ""
        role = THREAD if name == "generic proxy" else ENGINE
        detail = f"issued by {who}" if role == ENGINE and who else who
        lane = draft.lane((name, access.thread if role == THREAD else ""), Lane(role, name, detail))
        if index:
            draft.open_gap()
        event = _place_event(draft, access, lane)
        if index:
            draft.edge(ordered, event, missing=True)
            break
        ordered = draft.event(lane, "edge", "ordered before (2)")
        draft.edge(event, ordered)
    return draft.done(_caption(finding))


# The end of the edge that is at fault: (the access it belongs to, what is wrong).
_SCOPES: Final = {"arrive-scope": (0, "released at .cta scope"), "wait-scope": (1, "acquired at .cta scope")}


def _scope(finding: Finding) -> Timeline:
    """Threads of two CTAs, and an edge whose scope is too narrow."""
    draft, sides = _Draft(finding), _sides(finding)
    if len(sides) < 2:
        return _pair(finding)
    first = _place_event(draft, sides[0], _thread_lane(draft, sides[0]))
    whose, label = _SCOPES.get(finding.situation, (0, "of too narrow a scope"))
    lanes = [_thread_lane(draft, access) for access in sides[:2]]
    narrow = draft.event(lanes[whose], "edge", f"an edge {label}")
    draft.edge(first, narrow)
    draft.open_gap()
    second = _place_event(draft, sides[1], _thread_lane(draft, sides[1]))
    draft.edge(narrow, second, missing=True)
    return draft.done(_caption(finding))


# --- one access and memory ---------------------------------------------------------------------------------------------


def _uninitialised(finding: Finding) -> Timeline:
    """The write that should come first is missing; a later one is shown."""
    draft, sides = _Draft(finding), _sides(finding)
    draft.open_gap()
    read = _place_event(draft, sides[0], _thread_lane(draft, sides[0]))
    for access in sides[1:]:
        late = _place_event(draft, access, _thread_lane(draft, access))
        draft.edge(late, read, missing=True)
    return draft.done(_caption(finding), _unwritten(finding, sides[0]))


def _unwritten(finding: Finding, access: Access) -> tuple[Cell, ...]:
    """The bytes of (1) within the range that was never written (the union over all reads)."""
    if access.bytes is None or access.space != "shared":
        return ()
    begin, end = access.bytes
    low, high = (finding.buffer.offset, finding.buffer.offset + finding.buffer.bytes) if finding.buffer else access.bytes
    cells = [Cell("hit", f"{begin}..{end - 1}", "(1)")]
    if low < begin:
        cells.insert(0, Cell("unwritten", f"{low}..{begin - 1}"))
    if high > end:
        cells.append(Cell("unwritten", f"{end}..{high - 1}"))
    return tuple(cells)


def _outside(finding: Finding) -> Timeline:
    """The memory, its end, and the bytes beyond it."""
    draft, access = _Draft(finding), _sides(finding)[0]
    _place_event(draft, access, _thread_lane(draft, access))
    strip: tuple[Cell, ...] = ()
    if access.bytes is not None:
        begin, end = access.bytes
        memory = "shared memory of the CTA" if access.space == "shared" else "allocated memory"
        beyond = f"bytes {begin}..{end - 1}" if access.space == "shared" else f"{begin:#x}, {plural(end - begin, 'byte')}"
        strip = (Cell("inside", memory), Cell("outside", beyond, "(1)"))
    told = f"{_caption(finding).rstrip('.')}: {finding.missing}." if finding.missing else _caption(finding)
    return replace(draft.done(told, strip), missing="")


# --- barriers ----------------------------------------------------------------------------------------------------------

# Where the missing operation belongs, if not at the end: before (1), or between (1) and (2).
_GAP_OF_MISUSE: Final = {"not-initialised": 0, "invalidated": 1, "init-not-published": 1, "shared-id": 1, "initialised-twice": 1}
# Facts of a barrier beside its counts.
_STATES: Final = {
    "not-initialised": "never initialised",
    "invalidated": "invalidated",
    "divergent": "lanes of a warp are missing",
    "counts-disagree": "two thread counts meet",
    "shared-id": "two rounds can mix",
}


def _misuse(finding: Finding) -> Timeline:
    """The threads that use the barrier, and the barrier with its phase, if known."""
    if len(finding.waiters) == 2 and any(waiter.get("why") == "came" for waiter in finding.waiters):
        return _divergence(finding)
    draft, sides = _Draft(finding), _sides(finding)
    gap = _GAP_OF_MISUSE.get(finding.situation)
    for index, access in enumerate(sides):
        if gap is not None and index == min(gap, len(sides) - 1):
            draft.open_gap()
        _place_event(draft, access, _thread_lane(draft, access))
    if finding.barrier:
        lane = _mbarrier_lane(draft, *(finding.barrier.get(key) for key in ("offset", "cluster_rank", "name")))
        told = _STATES.get(finding.situation) or _state(finding.barrier) or "its state is not known"
        state = draft.event(lane, "state", told)
        draft.edge(len(sides) - 1, state, sides[-1].role)
    elif finding.situation in _STATES:
        state = draft.event(draft.lane("barrier", Lane(BARRIER, "barrier")), "state", _STATES[finding.situation])
        for index in range(len(sides)):
            draft.edge(index, state)
    for group in _groups(finding.waiters)[:MOST_WAITERS]:
        _wait_event(draft, group)
    return draft.done(_caption(finding))


def _divergence(finding: Finding) -> Timeline:
    """The lanes of a warp that reached an instruction, and those that did not."""
    draft, sides = _Draft(finding), _sides(finding)
    groups = [Lane(THREAD, _lanes_of(waiter), f"of warp {waiter.get('warp')}") for waiter in finding.waiters]
    came, others = (draft.lane(("lanes", number), lane) for number, lane in enumerate(groups))
    first = _place_event(draft, sides[0], came)
    instruction = draft.lane("barrier", Lane(BARRIER, "the instruction"))
    text = str(finding.waiters[1].get("why") or "are elsewhere")
    away = _place_event(draft, sides[1], others, "access", text) if len(sides) > 1 else draft.event(others, "lifetime", text)
    draft.open_gap()
    state = draft.event(instruction, "state", _STATES["divergent"])
    draft.edge(first, state)
    draft.edge(away, state, missing=True)
    return draft.done(_caption(finding))


def _lanes_of(waiter: dict[str, Any]) -> str:
    """`lanes 0 to 15`, of a mask."""
    mask = waiter.get("lanes")
    return lanes_phrase(mask) if isinstance(mask, int) else "some lanes"


def _state(barrier: dict[str, Any]) -> str:
    """`phase 0: 124 of 128 arrivals missing, 64 bytes missing`."""
    phase = "" if barrier.get("phase") is None else f"phase {barrier['phase']}"
    parts = []
    if barrier.get("pending") is not None and barrier.get("expected") is not None:
        parts.append(f"{barrier['pending']} of {plural(int(barrier['expected']), 'arrival')} missing")
    elif barrier.get("arrived") is not None and barrier.get("expected") is not None:
        parts.append(f"{barrier['arrived']} of {barrier['expected']} threads came")
    elif barrier.get("expected") is not None:
        parts.append(f"expects {plural(int(barrier['expected']), 'arrival')}")
    if barrier.get("tx"):
        parts.append(f"{plural(abs(int(barrier['tx'])), 'byte')} {'missing' if int(barrier['tx']) > 0 else 'too many'}")
    return ": ".join(filter(None, (phase, ", ".join(parts))))


# Waiting warps with these fields equal form one group.
_WHO: Final = ("warp", "block", "thread", "lanes", "threads")


def _groups(waiters: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for waiter in waiters:
        groups.setdefault(repr(sorted((k, str(v)) for k, v in waiter.items() if k not in _WHO)), []).append(waiter)
    return list(groups.values())


def _wait_event(draft: _Draft, group: list[dict[str, Any]]) -> int:
    """The warps that wait at one place, on their own lane."""
    first = group[0]
    title = f"warp {first['warp']}" if len(group) == 1 and first.get("warp") is not None else plural(len(group), "warp")
    blocks = {str(waiter.get("block")) for waiter in group if waiter.get("block") is not None}
    detail = "" if not blocks else f"CTA {_triple(first['block'])}" if len(blocks) == 1 else plural(len(blocks), "CTA")
    lane = draft.lane(("waiters", len(draft.lanes)), Lane(THREAD, title, detail))
    known = {name: first[name] for name in ("file", "line", "ptx_line") if first.get(name)}
    where = place(Access("", "", **known))
    text = "waits" if first.get("why") in ("mbarrier", "barrier", "cluster-barrier") else str(first.get("why") or "waits")
    return draft.event(lane, "wait", text, place=where)


def _awaited(draft: _Draft, waiter: dict[str, Any]) -> int | None:
    """The lane of the barrier that a warp waits for."""
    if waiter.get("mbarrier") is not None:
        return _mbarrier_lane(draft, *(waiter.get(key) for key in ("mbarrier", "cluster_rank", "name")))
    if waiter.get("why") == "cluster-barrier":
        return draft.lane("cluster", Lane(BARRIER, "barrier", "of the cluster"))
    if waiter.get("barrier") is not None:
        return draft.lane(("barrier", waiter["barrier"]), Lane(BARRIER, f"barrier {waiter['barrier']}"))
    return None


def _waiting(finding: Finding) -> Timeline:
    """Who waits, for what, and what that barrier still needs."""
    draft = _Draft(finding)
    for access in _sides(finding):
        _place_event(draft, access, _thread_lane(draft, access))
    groups = _drawn(finding.waiters)
    waits = [_wait_event(draft, group) for group in groups]
    states: dict[int, int] = {}
    for wait, group in zip(waits, groups, strict=True):
        _state_event(draft, wait, group[0], states)
    draft.open_gap()
    for wait in waits:
        draft.spans.append(LaneInterval(draft.events[wait].lane, wait, None))
    if waits and finding.kind == "deadlock" and finding.situation != "timeout":
        never = draft.event(draft.events[waits[0]].lane, "lifetime", "never goes on")
        draft.edge(next(iter(states.values()), waits[0]), never, missing=True)
    more = len(_groups(finding.waiters)) - len(groups)
    return draft.done(_caption(finding) + (f" {plural(more, 'more group')} of warps not drawn." if more else ""))


def _drawn(waiters: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The groups that fit, with the barriers that they wait for."""
    drawn: list[list[dict[str, Any]]] = []
    for group in _groups(waiters)[:MOST_WAITERS]:
        if len({_barrier_key(each[0]) for each in (*drawn, group)}) <= MOST_BARRIERS:
            drawn.append(group)
    return drawn


def _barrier_key(waiter: dict[str, Any]) -> str:
    return repr([waiter.get(name) for name in ("why", "barrier", "mbarrier", "cluster_rank")])


def _state_event(draft: _Draft, wait: int, waiter: dict[str, Any], states: dict[int, int]) -> None:
    """The barrier that a warp waits for, drawn once, with what is pending."""
    lane = _awaited(draft, waiter)
    if lane is None:
        return
    if lane not in states:
        told = _state({**(draft.finding.barrier or {}), **waiter})  # a barrier that all wait for has its counts in the finding
        states[lane] = draft.event(lane, "state", told if ":" in told else f"{told} not complete".strip())
    draft.edge(wait, states[lane], "waits for")


# --- lifetimes ---------------------------------------------------------------------------------------------------------


def _lifetime(finding: Finding) -> Timeline:
    """An operation that outlives its CTA, or an access to a CTA that has not started or has exited."""
    sides = _sides(finding)
    if sides[0].asynchronous is None or finding.situation in ("not-started", "after-exit"):
        return _other_cta(finding)
    draft = _Draft(finding)
    _, flying = _flight(draft, sides[0])
    draft.open_gap()
    exits = draft.event(draft.events[0].lane, "lifetime", "the CTA exits")
    draft.edge(flying, exits, missing=True)
    _lands(draft, sides[0], flying, "may end only now")
    return draft.done(_caption(finding))


def _other_cta(finding: Finding) -> Timeline:
    """(1), and the start or the exit of the accessed CTA."""
    draft, sides = _Draft(finding), _sides(finding)
    other = Lane(CTA, "the other CTA", "owns the memory")
    mine = _thread_lane(draft, sides[0])
    if finding.situation == "after-exit":
        end = draft.event(draft.lane("other", other), "lifetime", "may have exited")
        draft.open_gap()
        access = _place_event(draft, sides[0], mine)
        draft.edge(access, end, missing=True)
        return draft.done(_caption(finding))
    access = _place_event(draft, sides[0], mine)
    draft.open_gap()
    text = "may start only now" if finding.situation == "not-started" else "starts or exits at an unknown time"
    start = draft.event(draft.lane("other", other), "lifetime", text)
    draft.edge(start, access, missing=True)
    return draft.done(_caption(finding))


_SHAPES: Final[dict[str, Callable[[Finding], Timeline]]] = {
    "missing-proxy-fence": _proxy,
    "scope": _scope,
    "uninitialized-read": _uninitialised,
    "out-of-bounds": _outside,
    "barrier-misuse": _misuse,
    "deadlock": _waiting,
    "lifetime": _lifetime,
}
