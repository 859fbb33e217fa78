"""Raw findings, as replays of recorded launches give them: those of several replays as one list, with one kind for each pair of accesses.

A record has the fields of the checker's `Record`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from consan.instrument.findings import UNORDERED, Hazard, Kind, Reason
from consan.reports.verdict.precedence import Silences, speaking

Key = tuple[int, int, int, int, int]
Order = Iterable[Any]  # the records of one replay

# Numbers: a launch without one of its barriers has thousands of findings, and members of enumerations are slow to look up.
_RACE, _WAIT, _FENCE = int(Kind.DATA_RACE), int(Kind.MISSING_WAIT), int(Kind.MISSING_PROXY_FENCE)
_DEADLOCKS: Final = frozenset((int(Kind.DEADLOCK), int(Kind.WAITER)))
_ANY: Final = frozenset(map(int, Reason))
_ANY_KIND: Final = 0
_NO_WAIT: Final = frozenset((int(Reason.NOT_COMMITTED), int(Reason.NOT_WAITED)))
_WAITED: Final = frozenset((int(Reason.WAITED_NO_BARRIER),))
_OF_WARP: Final = frozenset((int(Reason.NO_WARP_SYNC),))


class _Raw(NamedTuple):
    """A record, its key, and the fields that decide. `in_text`: its first side comes first in the text: sites are numbered in its order.

    `ordered`: of a missing wait, whether the issue of the operation is ordered with the access; also where the text orders them.
    """

    record: Any
    key: Key
    kind: int
    reason: int
    pair: tuple[int, int]
    in_text: bool
    ordered: bool


class _Which(NamedTuple):
    """Records of a kind, or of any. `in_text`, `ordered`: only those that are."""

    kind: int
    reasons: frozenset[int] = _ANY
    in_text: bool = False
    ordered: bool = False

    def has(self, raw: _Raw) -> bool:
        """Whether a record is one of them."""
        return (
            self.kind in (raw.kind, _ANY_KIND)
            and raw.reason in self.reasons
            and raw.in_text >= self.in_text
            and raw.ordered >= self.ordered
        )


def _pair(raw: _Raw) -> tuple[tuple[int, int]]:
    return (raw.pair,)


def _silences(speaks: _Which, silent: _Which) -> Silences[_Raw]:
    return Silences(speaks.has, silent.has, _pair)


# Of one pair of accesses (SEMANTICS section 8). An unordered copy and access are a race in one order, a missing wait in the other: the one
# whose sides come as in the text is reported.
_OF_A_PAIR: Final = (
    _silences(_Which(_WAIT, ordered=True), _Which(_RACE)),
    _silences(_Which(_RACE, in_text=True), _Which(_WAIT)),
    _silences(_Which(_WAIT), _Which(_RACE)),
    _silences(_Which(_FENCE), _Which(_RACE, _OF_WARP)),
)
_WITHIN_AN_ORDER: Final = (_silences(_Which(_WAIT, _NO_WAIT), _Which(_WAIT, _WAITED)),)
# A barrier is missing, not the wait: in some order the wait came before the access, whichever threads met.
_OF_ORDERS: Final = (_silences(_Which(_WAIT, _WAITED), _Which(_ANY_KIND, _NO_WAIT)),)


def key(record: Any) -> Key:
    """The fields in which merged findings agree: kind, reason, whether they are of one warp and of equal values, and both sites."""
    return _raw(record).key


def _raw(record: Any) -> _Raw:
    kind, flags, reason = int(record["kind"]), int(record["flags"]), int(record["reason"])
    site, other = int(record["site"]), int(record["other_site"])
    pair, in_text = ((other, site), True) if other < site else ((site, other), False)
    return _Raw(record, (kind, flags & 3, reason, *pair), kind, reason, pair, in_text, in_text or not flags & UNORDERED)


def united(orders: Sequence[Order], *, undefined: bool = False) -> list[Any]:
    """The findings of both orders; a finding that both have is taken from the first.

    `undefined`: one came to a divergent `.aligned` instruction. After it the behaviour is undefined, and the order decides how much is
    replayed before it. Then only findings that both orders have are kept.
    """
    by_name = [{raw.key: raw for raw in map(_raw, order)} for order in orders]
    found = {name: raw for order in reversed(by_name) for name, raw in order.items()}
    kept = [raw for name, raw in found.items() if not undefined or all(name in order for order in by_name)]
    waited = [raw for order in by_name for raw in speaking(order.values(), _WITHIN_AN_ORDER)]
    return _selected(speaking(kept, _OF_ORDERS, waited))


def united_records(orders: Sequence[Order]) -> list[Any]:
    """The findings of all orders. One that several have is taken from the first; a race, if it can be, as its sides come in the text."""
    found: dict[Key, _Raw] = {}
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


def _selected(found: Iterable[_Raw]) -> list[Any]:
    left = speaking(found, _OF_A_PAIR)
    for raw in left:
        raw.record["flags"] &= ~np.uint32(UNORDERED)
    return [raw.record for raw in sorted(left, key=lambda raw: raw.kind == _WAIT and raw.reason)]


def proven(found: list[Any], *, deadlocks: bool) -> list[Any]:
    """The findings that are reported: deadlocks only if they are proven."""
    return found if deadlocks else [record for record in found if int(record["kind"]) not in _DEADLOCKS]
