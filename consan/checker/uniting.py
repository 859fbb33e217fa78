"""The findings of several replays of one history as one list, with one kind for each pair of accesses."""

from __future__ import annotations

from typing import Any

import numpy as np

from consan.checker.layouts import UNORDERED, Status
from consan.checker.replay import Replayed
from consan.instrument.findings import Hazard, Kind, Reason

# Numbers: a launch without one of its barriers has thousands of findings, and members of enumerations are slow to look up.
_RACE, _WAIT, _FENCE = int(Kind.DATA_RACE), int(Kind.MISSING_WAIT), int(Kind.MISSING_PROXY_FENCE)
_NO_WAIT = (int(Reason.NOT_COMMITTED), int(Reason.NOT_WAITED))
_NO_BARRIER, _NO_WARP_SYNC = int(Reason.WAITED_NO_BARRIER), int(Reason.NO_WARP_SYNC)

Key = tuple[int, int, int, int, int]


def key(record: Any) -> Key:
    """The fields in which merged findings agree: kind, reason, whether they are of one warp and of equal values, and both sites."""
    first, second = sorted((int(record["site"]), int(record["other_site"])))
    return int(record["kind"]), int(record["flags"]) & 3, int(record["reason"]), first, second


def united(done: list[Replayed]) -> list[Any]:
    """The findings of both orders; a finding that both have is taken from the first.

    After a divergent `.aligned` instruction the behaviour is undefined, and the order decides how much is replayed before it. Then only
    findings that both orders have are kept.
    """
    orders = [{key(record): record for record in each.records} for each in done]
    undefined = any(each.status is Status.UNDEFINED for each in done)
    found = {name: record for order in reversed(orders) for name, record in order.items()}
    kept = [name for name in found if not undefined or all(name in order for order in orders)]
    waited = _waited(orders)
    return preferred([found[name] for name in kept if name[3:] not in waited or name[2] not in _NO_WAIT])


def _waited(orders: list[dict[Key, Any]]) -> set[tuple[int, ...]]:
    """Pairs that miss a barrier after a wait, not the wait: in some order the wait came before the access, whichever threads met."""
    found: set[tuple[int, ...]] = set()
    for order in orders:
        reasons: dict[tuple[int, ...], set[int]] = {}
        for name in order:
            if name[0] == _WAIT:
                reasons.setdefault(name[3:], set()).add(name[2])
        found |= {pair for pair, those in reasons.items() if _NO_BARRIER in those and those.isdisjoint(_NO_WAIT)}
    return found


def united_records(orders: list[list[Any]]) -> list[Any]:
    """The findings of all orders. One that several have is taken from the first; a race, if it can be, as its sides come in the text."""
    found: dict[Key, Any] = {}
    for order in orders:
        for record in order:
            known = found.setdefault(name := key(record), record)
            if name[0] == _RACE and _as_in_text(record) and not _as_in_text(known):
                found[name] = record
    return list(found.values())


def forward(found: list[Any]) -> list[Any]:
    """Races in global memory, as in the text where one of the same sites is: threads met the other way by chance."""
    races = [record for record in found if record["kind"] == _RACE]
    pairs = {key(record)[3:] for record in races if record["hazard"] == Hazard.RAW and _as_in_text(record)}
    for record in races:
        if key(record)[3:] in pairs and record["hazard"] == Hazard.WAR and not _as_in_text(record):
            record["hazard"] = Hazard.RAW
            for one, other in (("site", "other_site"), ("thread", "other_thread")):
                record[one], record[other] = int(record[other]), int(record[one])
    return found


def preferred(found: list[Any]) -> list[Any]:
    """One kind for each pair (SEMANTICS section 8).

    An unordered copy and access are a race in one order, a missing wait in the other: the one whose sides come as in the text is
    reported. A missing proxy fence is reported rather than a missing `bar.warp.sync`.
    """
    named = [(key(record), record) for record in found]
    races = {name[3:] for name, record in named if name[0] == _RACE and _as_in_text(record)}
    told = {name[3:] for name, record in named if name[0] == _WAIT and not _is_unordered(record)}
    named = [(name, record) for name, record in named if name[0] != _WAIT or name[3:] in told or name[3:] not in races]
    for _, record in named:
        record["flags"] &= ~np.uint32(UNORDERED)
    waits, fences = ({name[3:] for name, _ in named if name[0] == kind} for kind in (_WAIT, _FENCE))
    left = [(name, record) for name, record in named if name[0] != _RACE or not _is_other(name, waits, fences)]
    return [record for _, record in sorted(left, key=lambda each: each[0][0] == _WAIT and each[0][2])]


def _as_in_text(record: Any) -> bool:
    """Whether the first side comes first in the text: sites are numbered in its order."""
    return bool(record["other_site"] < record["site"])


def _is_unordered(wait: Any) -> bool:
    """Whether a missing wait is against the order of the text, of an operation whose issue nothing orders with the access."""
    return bool(wait["flags"] & UNORDERED) and not _as_in_text(wait)


def _is_other(race: Key, waits: set[tuple[int, int]], fences: set[tuple[int, int]]) -> bool:
    """Whether the pair of a race has a finding of another kind that comes first."""
    return race[3:] in waits or (race[3:] in fences and race[2] == _NO_WARP_SYNC)
