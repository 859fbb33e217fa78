"""R-SR1: fences with .sync_restrict order accesses to shared memory only; those with .release only those to their own CTA's.

A replay takes them for whole fences. It is repeated without them where more is reached than the own CTA's shared memory. A race in tensor
memory or global memory that only the second replay has is reported. One in shared memory is reported if a third replay, with the fences of
the CTA that has the bytes, finds it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from consan.checker.compiled.layouts import RestrictedFences
from consan.instrument.findings import FindingFlags, Kind

_CONFLICTS = (Kind.DATA_RACE, Kind.MISSING_TENSOR_FENCE, Kind.MISSING_WAIT)
_Name = tuple[int, int, int, int]


def races_behind(replay: Callable[[int], Iterable[np.void]], whole: Iterable[np.void], cta_bytes: int, ctas: int) -> list[np.void]:
    """The races that only these fences seem to order, in shared memory and tensor memory.

    `replay`: the findings of one that takes some of the fences, a `RestrictedFences`; `whole`: those of the one that takes all.
    """
    known = set(map(_name, whole))
    found = list(_others(replay(RestrictedFences.NONE), known))
    shared = [record for record in found if not record["flags"] & FindingFlags.TENSOR] if ctas > 1 else []
    owners = sorted({owner for record in shared for owner in range(record["low"] // cta_bytes, (record["high"] - 1) // cta_bytes + 1)})
    of_owners = (_others(replay(RestrictedFences.OF_CTA + owner), known) for owner in owners)
    in_shared = (record for each in of_owners for record in each if not record["flags"] & FindingFlags.TENSOR)
    return [*(record for record in found if record["flags"] & FindingFlags.TENSOR), *in_shared]


def _others(records: Iterable[np.void], known: set[_Name]) -> Iterator[np.void]:
    return (record for record in records if record["kind"] in _CONFLICTS and _name(record) not in known)


def _name(record: np.void) -> _Name:
    first, second = sorted((int(record["site"]), int(record["other_site"])))
    return int(record["cluster"]), int(record["kind"]), first, second
