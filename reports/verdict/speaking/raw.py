"""Raw findings, as replays of recorded launches give them: those of several replays as one list, with one kind for each pair of accesses.

A record has the fields of the checker's `Record`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from consan.instrument.findings import KEY_FLAGS, UNORDERED, Hazard, Kind
from consan.reports.verdict.speaking.precedence import speaking
from consan.reports.verdict.speaking.relations import OF_A_PAIR, OF_AN_ORDER, OF_ORDERS
from consan.reports.verdict.speaking.terms import Key, Raw

Order = Iterable[Any]  # the records of one replay

_RACE: Final = int(Kind.DATA_RACE)
_WAIT: Final = int(Kind.MISSING_WAIT)
_DEADLOCKS: Final = frozenset((int(Kind.DEADLOCK), int(Kind.WAITER)))


def key(record: Any) -> Key:
    """The fields in which merged findings agree: kind, reason, whether they are of one warp and of equal values, and both sites."""
    return _raw(record).key


def _raw(record: Any) -> Raw:
    kind, flags, reason = int(record["kind"]), int(record["flags"]), int(record["reason"])
    site, other = int(record["site"]), int(record["other_site"])
    pair, in_text = ((other, site), True) if other < site else ((site, other), False)
    return Raw(record, (kind, flags & KEY_FLAGS, reason, *pair), kind, reason, pair, in_text, in_text or not flags & UNORDERED)


def united(orders: Sequence[Order], *, undefined: bool = False) -> list[Any]:
    """The findings of both orders; a finding that both have is taken from the first.

    `undefined`: one came to a divergent `.aligned` instruction. After it the behaviour is undefined, and the order decides how much is
    replayed before it. Then only findings that both orders have are kept.
    """
    by_name = [{raw.key: raw for raw in map(_raw, order)} for order in orders]
    found = {name: raw for order in reversed(by_name) for name, raw in order.items()}
    kept = [raw for name, raw in found.items() if not undefined or all(name in order for order in by_name)]
    waited = [raw for order in by_name for raw in speaking(order.values(), OF_AN_ORDER)]
    return _selected(speaking(kept, OF_ORDERS, waited))


def united_records(orders: Sequence[Order]) -> list[Any]:
    """The findings of all orders. One that several have is taken from the first; a race, if it can be, as its sides come in the text."""
    found: dict[Key, Raw] = {}
    for raw in (_raw(record) for order in orders for record in order):
        known = found.setdefault(raw.key, raw)
        if raw.kind == _RACE and raw.in_text and not known.in_text:
            found[raw.key] = raw
    return [raw.record for raw in found.values()]


def forward(found: list[Any]) -> list[Any]:
    """Races in global memory, as in the text where one of the same sites is: threads met the other way by chance."""
    races = [raw for raw in map(_raw, found) if raw.kind == _RACE]
    pairs = {raw.pair for raw in races if raw.record["hazard"] == Hazard.RAW and raw.in_text}
    for record in (raw.record for raw in races if raw.pair in pairs and raw.record["hazard"] == Hazard.WAR and not raw.in_text):
        record["hazard"] = Hazard.RAW
        for one, other in (("site", "other_site"), ("thread", "other_thread")):
            record[one], record[other] = int(record[other]), int(record[one])
    return found


def selected(found: Iterable[Any]) -> list[Any]:
    """The findings that speak for their pairs."""
    return _selected(map(_raw, found))


def _selected(found: Iterable[Raw]) -> list[Any]:
    left = speaking(found, OF_A_PAIR)
    for raw in left:
        raw.record["flags"] &= ~np.uint32(UNORDERED)
    return [raw.record for raw in sorted(left, key=lambda raw: raw.kind == _WAIT and raw.reason)]


def proven(found: list[Any], *, deadlocks: bool) -> list[Any]:
    """The findings that are reported: deadlocks only if they are proven."""
    return found if deadlocks else [record for record in found if int(record["kind"]) not in _DEADLOCKS]
