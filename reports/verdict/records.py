"""The records of both engines before they have words: those that others speak for, or that shipped code may do, are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from consan.instrument.findings import FindingFlags, FindingRecord, Kind, Reason
from consan.reports.facts import situation_of
from consan.reports.found import ModuleSites, is_copy, kernel_of
from consan.reports.verdict.precedence import Silences, speaking


def _is(*kinds: Kind) -> Callable[[FindingRecord], bool]:
    return lambda found: found.kind in kinds


_TABLE: Final[tuple[Silences[FindingRecord], ...]] = (
    # An uninitialised read that a later, unordered write explains is one defect: the engine reports the pair as a data race, too.
    Silences(
        _is(Kind.READ_EXPLAINED), _is(Kind.UNINITIALIZED_READ), lambda found: ((found.module, found.site),), lambda found: found.count
    ),
    # The missing wait is the same, and the conflicts before the exit say more.
    Silences(
        lambda found: found.kind is Kind.MISSING_WAIT and is_copy(found),
        lambda found: found.kind is Kind.LIFETIME and found.reason is Reason.EXIT and is_copy(found),
        lambda found: (kernel_of(found),),
    ),
)
_PARTS: Final = _is(Kind.READ_EXPLAINED, Kind.WAITER)  # of other findings


def reported(records: Sequence[FindingRecord], modules: Mapping[int, ModuleSites]) -> Iterable[FindingRecord]:
    """The records that are findings of a report."""
    left = (found for found in speaking(records, _TABLE) if not _PARTS(found))
    return (found for found in left if modules[found.module].isa or not is_exchanged(found, modules[found.module]))


def is_exchanged(found: FindingRecord, module: ModuleSites) -> bool:
    """Whether the write of a lane needs what the lanes of its warp have exchanged of the values that they read (R-W1)."""
    of_lanes = found.kind in (Kind.DATA_RACE, Kind.MISSING_ORDER) and situation_of(found) == Reason.NO_WARP_SYNC.situation
    if not of_lanes or module.relations is None:
        return False
    one, other = module.site(found.site), module.site(found.other_site)
    within = FindingFlags.SAME_WARP in found.flags
    return within and one is not None and other is not None and module.relations.exchanged(one, other)
