"""The records of both engines before they have words: those that others speak for, or that shipped code may do, are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from consan.instrument.findings import FindingFlags, FindingRecord, Kind, Reason
from consan.reports.records.facts import situation_of
from consan.reports.records.finding_records import ModuleSites
from consan.reports.verdict.speaking.precedence import speaking
from consan.reports.verdict.speaking.relations import OF_A_LAUNCH

_PARTS: Final = (Kind.READ_EXPLAINED, Kind.WAITER)  # of other findings


def reported(records: Sequence[FindingRecord], modules: Mapping[int, ModuleSites]) -> Iterable[FindingRecord]:
    """The records that are findings of a report."""
    left = (record for record in speaking(records, OF_A_LAUNCH) if record.kind not in _PARTS)
    return (record for record in left if modules[record.module].isa or not is_exchanged(record, modules[record.module]))


def is_exchanged(record: FindingRecord, module: ModuleSites) -> bool:
    """Whether the write of a lane needs what the lanes of its warp have exchanged of the values that they read (R-W1)."""
    of_lanes = record.kind in (Kind.DATA_RACE, Kind.MISSING_ORDER) and situation_of(record) == Reason.NO_WARP_SYNC.situation
    if not of_lanes or module.relations is None:
        return False
    one, other = module.site(record.site), module.site(record.other_site)
    within = FindingFlags.SAME_WARP in record.flags
    return within and one is not None and other is not None and module.relations.exchanged(one, other)
