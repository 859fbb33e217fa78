"""Pictures of barriers that are used against their protocol, and of waits that never end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from consan.reports.catalogue.situations import UNPUBLISHED_TO_PEER
from consan.reports.counts import plural
from consan.reports.model import Finding
from consan.reports.records.divergence import lanes_phrase
from consan.reports.timeline.draft import Draft, triple
from consan.reports.timeline.picture import BARRIER, THREAD, Lane, LaneInterval, Timeline
from consan.reports.words.wording import place_of_waiter

MOST_WAITERS: Final = 3  # groups of waiting warps drawn; the facts of the finding list them all
MOST_BARRIERS: Final = 2

# The place of the missing operation, if not at the end: before (1), or between (1) and (2).
_GAP_OF_MISUSE: Final = {
    "not-initialised": 0,
    "invalidated": 1,
    "init-not-published": 1,
    UNPUBLISHED_TO_PEER: 1,
    "shared-id": 1,
    "initialised-twice": 1,
}
# Facts of a barrier beside its counts.
_STATES: Final = {
    "not-initialised": "never initialised",
    "invalidated": "invalidated",
    "divergent": "lanes of a warp are missing",
    "counts-disagree": "two thread counts meet",
    "shared-id": "two rounds can mix",
    "barrier-number": "there is none with this number",
    "thread-count": "waits for a part of a warp",
}


def misuse(finding: Finding) -> Timeline:
    """The threads that use the barrier, and the barrier with its phase, if known."""
    if len(finding.waiters) == 2 and any(waiter.get("why") == "came" for waiter in finding.waiters):
        return _divergence(finding)
    draft, sides = Draft(finding), finding.pair
    gap = _GAP_OF_MISUSE.get(finding.situation)
    for index, access in enumerate(sides):
        if gap is not None and index == min(gap, len(sides) - 1):
            draft.open_gap()
        draft.executed(access)
    if finding.barrier:
        lane = draft.mbarrier_lane(*(finding.barrier.get(key) for key in ("offset", "cluster_rank", "name")))
        state_text = _STATES.get(finding.situation) or _state(finding.barrier) or "its state is not known"
        state = draft.event(lane, "state", state_text)
        draft.edge(len(sides) - 1, state, sides[-1].role)
    elif finding.situation in _STATES:
        state = draft.event(draft.lane("barrier", Lane(BARRIER, "barrier")), "state", _STATES[finding.situation])
        for index in range(len(sides)):
            draft.edge(index, state)
    for group in _groups(finding.waiters)[:MOST_WAITERS]:
        _wait_event(draft, group)
    return draft.done()


def _divergence(finding: Finding) -> Timeline:
    """The lanes of a warp that reached an instruction, and those that did not."""
    draft, sides = Draft(finding), finding.pair
    groups = [Lane(THREAD, _lanes_of(waiter), f"of warp {waiter.get('warp')}") for waiter in finding.waiters]
    came, others = (draft.lane(("lanes", number), lane) for number, lane in enumerate(groups))
    first = draft.place_event(sides[0], came)
    instruction = draft.lane("barrier", Lane(BARRIER, "the instruction"))
    text = str(finding.waiters[1].get("why") or "are elsewhere")
    away = draft.place_event(sides[1], others, text) if len(sides) > 1 else draft.event(others, "lifetime", text)
    draft.open_gap()
    state = draft.event(instruction, "state", _STATES["divergent"])
    draft.edge(first, state)
    draft.edge(away, state, missing=True)
    return draft.done()


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


def _wait_event(draft: Draft, group: list[dict[str, Any]]) -> int:
    """The warps that wait at one place, on their own lane."""
    first = group[0]
    title = f"warp {first['warp']}" if len(group) == 1 and first.get("warp") is not None else plural(len(group), "warp")
    blocks = {str(waiter.get("block")) for waiter in group if waiter.get("block") is not None}
    detail = "" if not blocks else f"CTA {triple(first['block'])}" if len(blocks) == 1 else plural(len(blocks), "CTA")
    detail = detail if first.get("rank") is None else f"rank {first['rank']}, {detail}"
    lane = draft.lane(("waiters", len(draft.lanes)), Lane(THREAD, title, detail))
    text = "waits" if first.get("why") in ("mbarrier", "barrier", "cluster-barrier") else str(first.get("why") or "waits")
    return draft.event(lane, "wait", text, place=place_of_waiter(first))


def _awaited(draft: Draft, waiter: dict[str, Any]) -> int | None:
    """The lane of the barrier that a warp waits for."""
    if waiter.get("mbarrier") is not None:
        return draft.mbarrier_lane(*(waiter.get(key) for key in ("mbarrier", "cluster_rank", "name")))
    if waiter.get("why") == "cluster-barrier":
        return draft.lane("cluster", Lane(BARRIER, "barrier", "of the cluster"))
    if waiter.get("barrier") is not None:
        return draft.lane(("barrier", waiter["barrier"]), Lane(BARRIER, f"barrier {waiter['barrier']}"))
    return None


def waiting(finding: Finding) -> Timeline:
    """A picture of the threads that wait, and of the signals that their barrier still needs."""
    draft = Draft(finding)
    for access in finding.pair:
        draft.executed(access)
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
    picture = draft.done()
    return replace(picture, caption=f"{picture.caption} {plural(more, 'more group')} of warps not drawn.") if more else picture


def _drawn(waiters: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The groups that fit, with the barriers that they wait for."""
    drawn: list[list[dict[str, Any]]] = []
    for group in _groups(waiters)[:MOST_WAITERS]:
        if len({_barrier_key(each[0]) for each in (*drawn, group)}) <= MOST_BARRIERS:
            drawn.append(group)
    return drawn


def _barrier_key(waiter: dict[str, Any]) -> str:
    return repr([waiter.get(name) for name in ("why", "barrier", "mbarrier", "cluster_rank")])


def _state_event(draft: Draft, wait: int, waiter: dict[str, Any], states: dict[int, int]) -> None:
    """The barrier that a warp waits for, drawn once, with what is pending."""
    lane = _awaited(draft, waiter)
    if lane is None:
        return
    if lane not in states:
        state_text = _state({**(draft.finding.barrier or {}), **waiter})  # a barrier that all wait for has its counts in the finding
        states[lane] = draft.event(lane, "state", state_text if ":" in state_text else f"{state_text} not complete".strip())
    draft.edge(wait, states[lane], "waits for")


# --- lifetimes ---------------------------------------------------------------------------------------------------------
