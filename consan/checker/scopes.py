"""R-SCOPE: which races of a cluster lack nothing but a scope.

A replay whose races may be of that kind is repeated with wider scopes (source/scopes.hpp). All replays of an order meet the same accesses,
because scopes decide nothing about who goes on. So a pair of sites with fewer races then has some that the narrow scope makes. A finding of
another kind that disappears then is due to the scope alone: who repairs the scope has repaired it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from consan.checker.layouts import Level
from consan.checker.replay import Replayed
from consan.instrument.findings import Kind, Reason

if TYPE_CHECKING:
    from consan.checker.grid import GridChecked

_Pair = tuple[int, int]
_UNORDERED = (Kind.DATA_RACE, Kind.MISSING_TENSOR_FENCE)  # what a narrow scope looks like, of shared and of tensor memory
_CONFLICTS = (*_UNORDERED, Kind.MISSING_WAIT)
_RACES = (*_UNORDERED, Kind.GLOBAL_RACE)
# Of a race in global memory: what it is, and the sites of what lacks.
_TOLD = ("kind", "reason", "flag_write", "flag_read", "fence", "narrow_fence")


def named(at: Callable[[Level], Replayed]) -> Replayed:
    """A replay at the exact level, whose races have the kind `scope` where that explains them. `at`: replays at a level."""
    exact = at(Level.EXACT)
    if not _counts(exact.records, _CONFLICTS):
        return exact
    records, waits, scopes = exact.records.copy(), at(Level.WAIT_SCOPES).records, at(Level.SCOPES).records
    for kind in _UNORDERED:
        counts, by_waits, by_scopes = (_counts(each, (kind,)) for each in (exact.records, waits, scopes))
        for record in records:
            pair = _pair(record)
            if record["kind"] == kind and by_scopes[pair] < counts[pair]:
                record["kind"], record["reason"] = Kind.SCOPE, Reason.ARRIVE_SCOPE if by_waits[pair] else Reason.WAIT_SCOPE
    waited, left = _counts(waits, (Kind.MISSING_WAIT,)), _counts(scopes, _CONFLICTS)
    for record in records:
        pair = _pair(record)
        if record["kind"] == Kind.MISSING_WAIT and not left[pair]:
            record["kind"], record["reason"] = Kind.SCOPE, Reason.ARRIVE_SCOPE if waited[pair] else Reason.WAIT_SCOPE
    return replace(exact, records=records[_stay(records, scopes)])


def named_of_launch(at: Callable[[Level], GridChecked], ctas: int) -> GridChecked:
    """The same for all units of a launch, of so many CTAs each. The checker has noted the fence that may be too narrow in global memory."""
    exact = at(Level.EXACT)
    outer, inner = _unordered(exact.records), _unordered(exact.of_units) if ctas > 1 else []
    scoped = [record for record in exact.records if record["kind"] == Kind.SCOPE]
    if not (exact.narrow and outer) and not inner and not scoped:
        return exact
    wide = at(Level.SCOPES)
    _lack_more(scoped, wide.records)
    gone = _gone(outer, wide.records)
    for record in (each for each in gone if each["narrow_fence"]):
        record["kind"], record["reason"], record["fence"] = Kind.SCOPE, Reason.FENCE_SCOPE, record["narrow_fence"]
    signals = [each for each in gone if each["kind"] == Kind.GLOBAL_RACE], _gone(inner, wide.of_units)
    waited = at(Level.WAIT_SCOPES) if any(signals) else wide
    for records, left in zip(signals, (waited.records, waited.of_units), strict=True):
        waits = {_pair(record) for record in _unordered(left)}
        for record in records:
            record["kind"], record["reason"] = Kind.SCOPE, Reason.ARRIVE_SCOPE if _pair(record) in waits else Reason.WAIT_SCOPE
    stay = _stay(exact.of_units, wide.of_units)
    return replace(exact, of_units=[record for record, stays in zip(exact.of_units, stay, strict=True) if stays])


def of_weaker_fences(exact: list[np.void], strict: list[np.void]) -> list[np.void]:
    """The races that only a strict replay has, which takes no weaker fence for a fence.sc (SEMANTICS D17)."""
    known = {_pair(record) for record in exact}
    found = [record.copy() for record in _unordered(strict) if _pair(record) not in known]
    for record in found:
        record["reason"] = Reason.WEAKER_FENCES
    return found


def _lack_more(scoped: list[np.void], wide: list[np.void]) -> None:
    """A race that remains under wide scopes is no `scope`: the report names the race that remains."""
    left = {_pair(record): record for record in _unordered(wide)}
    for record in scoped:
        if (found := left.get(_pair(record))) is not None:
            for name in _TOLD:
                record[name] = found[name]


def _stay(records: Iterable[np.void], wide: Iterable[np.void]) -> npt.NDArray[np.bool_]:
    """Whether each record is reported. Beside a record of a scope, those of other kinds that wide scopes remove are left out."""
    kinds = [Kind(int(record["kind"])) for record in records]
    left = {(int(record["kind"]), _pair(record)) for record in wide} if Kind.SCOPE in kinds else None
    told = (Kind.SCOPE, *_RACES)
    return np.array(
        [left is None or kind in told or (kind, _pair(each)) in left for kind, each in zip(kinds, records, strict=True)], np.bool_
    )


def _gone(races: list[np.void], wide: list[np.void]) -> list[np.void]:
    """Those whose pair has no race if scopes are wide."""
    left = {_pair(record) for record in _unordered(wide)}
    return [record for record in races if _pair(record) not in left]


def _unordered(records: list[np.void]) -> list[np.void]:
    return [record for record in records if record["kind"] in _RACES]


def _counts(records: npt.NDArray[np.void], kinds: tuple[Kind, ...]) -> Counter[_Pair]:
    """How often each pair of sites has findings of some kinds."""
    found: Counter[_Pair] = Counter()
    for record in records[np.isin(records["kind"], kinds)]:
        found[_pair(record)] += int(record["count"])
    return found


def _pair(record: np.void) -> _Pair:
    first, second = sorted((int(record["site"]), int(record["other_site"])))
    return first, second
