"""R-SCOPE: which races of a cluster lack nothing but a scope.

A replay whose races may be of that kind is repeated with wider scopes (source/scopes.hpp). All replays of an order meet the same accesses,
because scopes decide nothing about who goes on. So a pair of sites with fewer races then has some that the narrow scope makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from consan.checker.replay import Level, Replayed
from consan.instrument.abi.events import Kind, Reason

_Pair = tuple[int, int]


def named(at: Callable[[Level], Replayed]) -> Replayed:
    """A replay at the exact level, whose races have the kind `scope` where that explains them. `at`: replays at a level."""
    exact = at(Level.EXACT)
    if not _races(exact.records):
        return exact
    records = exact.records.copy()
    counts, waits, scopes = (_races(each.records) for each in (exact, at(Level.WAIT_SCOPES), at(Level.SCOPES)))
    for record in records:
        pair = _pair(record)
        if record["kind"] == Kind.DATA_RACE and scopes[pair] < counts[pair]:
            record["kind"], record["reason"] = Kind.SCOPE, Reason.ARRIVE_SCOPE if waits[pair] else Reason.WAIT_SCOPE
    return replace(exact, records=records)


def _races(records: npt.NDArray[np.void]) -> Counter[_Pair]:
    """How many races each pair of sites has."""
    found: Counter[_Pair] = Counter()
    for record in records[records["kind"] == Kind.DATA_RACE]:
        found[_pair(record)] += int(record["count"])
    return found


def _pair(record: np.void) -> _Pair:
    first, second = sorted((int(record["site"]), int(record["other_site"])))
    return first, second
