"""Pictures of two accesses: in no order, in an order that the proxies do not share, in one of too narrow a scope."""

from __future__ import annotations

from typing import Final

from consan.reports.model import Access, Finding
from consan.reports.timeline.draft import Draft, triple
from consan.reports.timeline.picture import ENGINE, THREAD, Lane, LaneInterval, Timeline


def pair(finding: Finding) -> Timeline:
    """(1), what is missing, (2)."""
    draft, sides = Draft(finding), finding.pair
    first, flying = _begin(draft, sides[0])
    waited = _waited(draft, sides, flying)
    draft.open_gap()
    if len(sides) > 1:
        second, flying_too = _begin(draft, sides[1])
        draft.edge(waited if waited is not None else first if flying is None else flying, second, missing=True)
        if flying is not None and waited is None:
            draft.lands(sides[0], flying, "may end only now")
        if flying_too is not None:
            draft.spans.append(LaneInterval(draft.events[flying_too].lane, flying_too, None))
    return draft.done()


def _begin(draft: Draft, access: Access) -> tuple[int, int | None]:
    if access.asynchronous is None:
        return draft.executed(access), None
    return draft.flight(access)


# Waits implied by the situation: (whose, what). "issuer" and "second" are the threads of (1) and (2).
_WAITS: Final = {
    "waited-no-barrier": ("issuer", "waits for the end of (1)"),
    "waited-no-barrier:bulk load": ("another thread", "waits for the end of (1)"),
    "waited-no-barrier:st.async": ("another thread", "waits for the end of (1)"),
    "waited-no-barrier:try_cancel": ("another thread", "waits for the response"),
    "waited-no-barrier:wgmma": ("a warp of the warpgroup", "waits for the end of (1)"),
    "own-warp-waited": ("second", "waits, for its own warp only"),
    "other-lanes": ("another lane of the warp", "waits for the end of (1)"),
    "other-issuer": ("another thread", "waits, for its own operations only"),
    "read-wait-only": ("issuer", "waits (.read) for the reads of (1) only"),
}
_SERVES: Final = ("waited-no-barrier", "other-lanes")  # the wait has observed the completion of (1)


def _waited(draft: Draft, sides: tuple[Access, ...], flying: int | None) -> int | None:
    """The existing wait. Its event, if it observed the completion of (1): only an edge from it to (2) is missing then."""
    situation, action = draft.finding.situation.removeprefix("global-"), sides[0].asynchronous
    row = _WAITS.get(f"{situation}:{action.kind}" if action else "", _WAITS.get(situation))
    if row is None or flying is None or len(sides) < 2:
        return None
    who, text = row
    known = {"issuer": sides[0], "second": sides[1]}
    lane = draft.thread_lane(known[who]) if who in known else draft.lane(who, Lane(THREAD, who))
    if situation not in _SERVES:
        draft.event(lane, "wait", text)
        return None
    landed = draft.lands(sides[0], flying, "ends")
    wait = draft.event(lane, "wait", text)
    draft.edge(landed, wait, "seen by the wait")
    return wait


def proxy(finding: Finding) -> Timeline:
    """A lane for each proxy: the order exists, the fence between the proxies is missing."""
    draft, sides = Draft(finding), finding.pair
    if len(sides) < 2:
        return pair(finding)
    ordered = -1
    for index, access in enumerate(sides):
        name = "tensormap proxy" if index and "map-not" in finding.situation else f"{access.proxy} proxy"
        who = f"thread {triple(access.thread)}" if access.thread else ""
        role = THREAD if name == "generic proxy" else ENGINE
        detail = f"issued by {who}" if role == ENGINE and who else who
        lane = draft.lane((name, access.thread if role == THREAD else ""), Lane(role, name, detail))
        if index:
            draft.open_gap()
        event = draft.place_event(access, lane)
        if index:
            draft.edge(ordered, event, missing=True)
            break
        ordered = draft.event(lane, "edge", "ordered before (2)")
        draft.edge(event, ordered)
    return draft.done()


# The end of the edge that is at fault: (the access it belongs to, what is wrong).
_SCOPES: Final = {"arrive-scope": (0, "released at .cta scope"), "wait-scope": (1, "acquired at .cta scope")}


def scope(finding: Finding) -> Timeline:
    """Threads of two CTAs, and an edge whose scope is too narrow."""
    draft, sides = Draft(finding), finding.pair
    if len(sides) < 2:
        return pair(finding)
    first = draft.executed(sides[0])
    whose, label = _SCOPES.get(finding.situation, (0, "of too narrow a scope"))
    lanes = [draft.thread_lane(access) for access in sides[:2]]
    narrow = draft.event(lanes[whose], "edge", f"an edge {label}")
    draft.edge(first, narrow)
    draft.open_gap()
    second = draft.executed(sides[1])
    draft.edge(narrow, second, missing=True)
    return draft.done()
