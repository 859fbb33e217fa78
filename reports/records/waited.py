"""Reads the last wait before the second access of a missing wait."""

from __future__ import annotations

from consan.instrument.findings import FindingRecord
from consan.reports.culprits.waited import WaitedFor, source_of
from consan.reports.records.finding_records import MBARRIER_BYTES, ModuleSites, layout_of
from consan.reports.records.numbering import inside


def last_wait(found: FindingRecord, module: ModuleSites) -> WaitedFor | None:
    """The last wait before (2), if the record has one."""
    waited = found.waited
    site = module.site(waited.site) if waited is not None else None
    if waited is None or site is None:
        return None
    offset = inside(found, waited.offset)
    name = layout_of(found, module).name(offset, offset + MBARRIER_BYTES)
    signal = module.site(waited.signal)
    signalled = source_of(signal) if signal is not None else None
    by = waited.signaller == found.other_thread, waited.signaller // 32 == found.thread // 32
    return WaitedFor(source_of(site), name, offset, waited.phase, signalled, *by)
