"""R-SCOPE: which races of a cluster lack nothing but a scope.

A replay whose races may be of that kind is repeated with wider scopes (checker/source/order/scopes.hpp). All replays of an order meet the
same accesses, because scopes decide nothing about who goes on. So a pair of sites with fewer races then has some that the narrow scope
makes. A finding of another kind that disappears then is due to the scope alone: who repairs the scope has repaired it. One that its pair
has only then is reported beside the scope, which may be a warning: who repairs the scope still has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Final

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.instrument.findings import Kind, Reason

_Pair = tuple[int, int]
_UNORDERED: Final = (Kind.DATA_RACE, Kind.MISSING_TENSOR_FENCE)  # what a narrow scope looks like, of shared and of tensor memory
_CONFLICTS: Final = (*_UNORDERED, Kind.MISSING_WAIT)
_RACES: Final = (*_UNORDERED, Kind.GLOBAL_RACE)
_BEHIND: Final = (Kind.MISSING_WAIT, Kind.MISSING_PROXY_FENCE)  # of two accesses that are in order as soon as scopes are wide
_ALWAYS: Final = (Kind.SCOPE, *_RACES)  # reported whatever wide scopes remove
# For a race in global memory: what it is, and the sites of what lacks.
_DESCRIBES: Final = ("kind", "reason", "flag_write", "flag_read", "fence", "narrow_fence")

Records = npt.NDArray[np.void]


def named(exact: Records, waits: Callable[[], Records], wide: Callable[[], Records]) -> Records:
    """The findings of a replay, with the kind `scope` where that explains a race. `waits`: those of a replay in which the scopes of waits
    are wide, which is made where scopes explain one; `wide`: in which all are.
    """
    if not _counts(exact, _CONFLICTS):
        return exact
    records, by_scopes = exact.copy(), wide()
    explained = list[np.void]()
    for kind in _UNORDERED:
        counts, left = (_counts(each, (kind,)) for each in (exact, by_scopes))
        explained += [each for each in records if each["kind"] == kind and left[_pair(each)] < counts[_pair(each)]]
    left = _counts(by_scopes, _CONFLICTS)
    explained += [each for each in records if each["kind"] == Kind.MISSING_WAIT and not left[_pair(each)]]
    by_waits = waits() if explained else exact
    waited = {kind: _counts(by_waits, (kind,)) for kind in _CONFLICTS}
    for record in explained:
        _name(record, waited[Kind(record["kind"])][_pair(record)])
    reported: Records = np.concatenate([records[_stay(records, by_scopes)], by_scopes[hidden(records, by_scopes)]])
    return reported


def _name(record: np.void, waited: int) -> None:
    """Give a record the kind `scope`. `waited`: whether wide scopes of waits leave some of it."""
    record["kind"], record["reason"] = Kind.SCOPE, Reason.ARRIVE_SCOPE if waited else Reason.WAIT_SCOPE


@dataclass(frozen=True)
class OfLaunch:
    """The findings of one replay of a launch: in global memory, and in the shared memory of each of its clusters."""

    records: list[np.void] = field(default_factory=list)
    of_clusters: list[np.void] = field(default_factory=list)


def named_of_launch(
    exact: OfLaunch, waits: Callable[[], OfLaunch], wide: Callable[[], OfLaunch], *, narrow: bool, several: bool
) -> list[np.void]:
    """Name those of a launch, in place, and return the findings in shared memory that are reported.

    `narrow`: some scope excludes other CTAs; the checker has noted the fence that may be too narrow in global memory. `several`: each
    cluster has more than one CTA.
    """
    outer, inner = _unordered(exact.records), _unordered(exact.of_clusters) if several else []
    scoped = [record for record in exact.records if record["kind"] == Kind.SCOPE]
    if not (narrow and outer) and not inner and not scoped:
        return exact.of_clusters
    by_scopes = wide()
    _lack_more(scoped, by_scopes.records)
    gone = _gone(outer, by_scopes.records)
    for record in (each for each in gone if each["narrow_fence"]):
        record["kind"], record["reason"], record["fence"] = Kind.SCOPE, Reason.FENCE_SCOPE, record["narrow_fence"]
    signals = [each for each in gone if each["kind"] == Kind.GLOBAL_RACE], _gone(inner, by_scopes.of_clusters)
    waited = waits() if any(signals) else by_scopes
    for records, left in zip(signals, (waited.records, waited.of_clusters), strict=True):
        pairs = {_pair(record) for record in _unordered(left)}
        for record in records:
            _name(record, _pair(record) in pairs)
    for records, left in ((exact.records, by_scopes.records), (exact.of_clusters, by_scopes.of_clusters)):
        records += [left[k] for k in np.flatnonzero(hidden(records, left))]
    stay = _stay(exact.of_clusters, by_scopes.of_clusters)
    return [record for record, stays in zip(exact.of_clusters, stay, strict=True) if stays]


def of_weaker_fences(exact: list[np.void], strict: list[np.void]) -> list[np.void]:
    """The races that only a strict replay has, which takes no weaker fence for a fence.sc (SEMANTICS D17)."""
    known = set(map(_pair, exact))
    found = [record.copy() for record in _unordered(strict) if _pair(record) not in known]
    for record in found:
        record["reason"] = Reason.WEAKER_FENCES
    return found


def _lack_more(scoped: list[np.void], wide: list[np.void]) -> None:
    """A race that remains under wide scopes is no `scope`: the report names the race that remains."""
    left = {_pair(record): record for record in _unordered(wide)}
    for record in scoped:
        if (found := left.get(_pair(record))) is not None:
            for name in _DESCRIBES:
                record[name] = found[name]


def _stay(records: Iterable[np.void], wide: Iterable[np.void]) -> npt.NDArray[np.bool_]:
    """Whether each record is reported. Beside a record of a scope, those of other kinds that wide scopes remove are left out."""
    kinds = [int(record["kind"]) for record in records]
    left = {(int(record["kind"]), _pair(record)) for record in wide} if Kind.SCOPE in kinds else None
    return np.array(
        [left is None or kind in _ALWAYS or (kind, _pair(each)) in left for kind, each in zip(kinds, records, strict=True)], np.bool_
    )


def hidden(records: Iterable[np.void], wide: Iterable[np.void]) -> npt.NDArray[np.bool_]:
    """Which of the findings under wide scopes a record of a scope hides."""
    known = {(int(record["kind"]), _pair(record)) for record in records}
    found = ((int(each["kind"]), _pair(each)) for each in wide)
    return np.array([kind in _BEHIND and (Kind.SCOPE, pair) in known and (kind, pair) not in known for kind, pair in found], np.bool_)


def _gone(races: list[np.void], wide: list[np.void]) -> list[np.void]:
    """Those whose pair has no race if scopes are wide."""
    left = {_pair(record) for record in _unordered(wide)}
    return [record for record in races if _pair(record) not in left]


def _unordered(records: list[np.void]) -> list[np.void]:
    return [record for record in records if record["kind"] in _RACES]


def _counts(records: Records, kinds: tuple[Kind, ...]) -> Counter[_Pair]:
    """How often each pair of sites has findings of some kinds."""
    found: Counter[_Pair] = Counter()
    for kind, record in zip(records["kind"].tolist(), records, strict=True):
        if kind in kinds:
            found[_pair(record)] += int(record["count"])
    return found


def _pair(record: np.void) -> _Pair:
    first, second = sorted((int(record["site"]), int(record["other_site"])))
    return first, second
