"""How much a finding counts, where that depends on more than its situation, which has a severity in the catalogue.

Findings that are a bug by the ISA only are warnings: current hardware and shipped libraries go on (SEMANTICS 8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.findings import KINDS, FindingFlags, FindingRecord, Kind, Operation, Reason
from consan.reports.catalogue.situations import UPDATE
from consan.reports.model import Finding
from consan.reports.records.finding_records import ModuleSites, is_global
from consan.reports.records.tensor_memory import in_tensor_memory

_OF_VALUES: Final = (Kind.DATA_RACE, Kind.MISSING_WAIT, Kind.UNINITIALIZED_READ)  # kinds that harm only the loaded value
_TORN: Final = (f"no-barrier@{UPDATE}", f"no-warp-sync@{UPDATE}")
_KEPT: Final = "current hardware keeps the memory until the store has read it"
_SAME_VALUE: Final = f"replicated@{UPDATE}"
_ALL_LANES: Final = 31  # the bits of a lane's number


@dataclass(frozen=True)
class Tolerance:
    """When a finding counts less, and the end of its message."""

    severity: str
    why: str
    holds: Callable[[Finding, FindingRecord], bool]


def with_tolerance(finding: Finding, record: FindingRecord, module: ModuleSites) -> Finding:
    """The finding with its severity, and why it counts less, if it does."""
    if is_unused(record, module):
        return _less(finding, "note", "the loaded value is not used")
    if is_rounded(record, module):
        return _less(finding, "note", "the lanes have summed the same values, each in its own order: theirs differ by rounding only")
    if is_first_guess(record, module):
        return _less(finding, "warning", "the read is a first guess: the compare-and-swap of the same bytes repeats where it is wrong")
    first = next((each for each in TOLERANCES if each.holds(finding, record)), None)
    return finding if first is None else _less(finding, first.severity, first.why)


def _less(finding: Finding, severity: str, why: str) -> Finding:
    return replace(finding, severity=severity, message=f"{finding.message}; {why}")


def of_same_value(finding: Finding) -> Finding:
    """A race of launches that store the same value: the bytes have it whatever comes first."""
    return replace(finding, severity="warning")


def is_unused(record: FindingRecord, module: ModuleSites) -> bool:
    """Whether a finding harms only a value that is not used."""
    sites = module.site(record.site), module.site(record.other_site)
    return record.kind in _OF_VALUES and any(site is not None and site.unused for site in sites)


def is_rounded(record: FindingRecord, module: ModuleSites) -> bool:
    """Whether lanes that have summed the same values store the sum by one instruction, each with its own rounding (R-RACE)."""
    site, one = module.site(record.site), record.kind is Kind.DATA_RACE and record.site == record.other_site
    if not one or FindingFlags.NEAR_VALUE not in record.flags or site is None or module.relations is None:
        return False
    bits = record.lane_bits if FindingFlags.SAME_WARP in record.flags else _ALL_LANES
    return bits & module.relations.summed_lanes(site) == bits


def is_first_guess(record: FindingRecord, module: ModuleSites) -> bool:
    """Whether a race harms only the value that a load guesses for a compare-and-swap of the same bytes (R-RACE)."""
    relations, sites = module.relations, (module.site(record.site), module.site(record.other_site))
    if relations is None or not KINDS[record.kind].conflicts:
        return False
    return any(site is not None and site.access == "read" and relations.is_first_guess(site) for site in sites)


def _pipeline_ends(_: Finding, record: FindingRecord) -> bool:
    """R-CP5: the thread waits for its bulk stores as it goes, and leaves the last of them behind."""
    done, is_store = record.completion, record.own_operation == Operation.BULK_STORE
    at_exit = record.kind is Kind.LIFETIME and record.reason is Reason.EXIT
    return done is not None and at_exit and is_store and 0 < done.retired < done.commits


def _has_release(finding: Finding, record: FindingRecord) -> bool:
    """R-SCOPE: only the scope of a release is narrow."""
    narrow = record.kind is Kind.SCOPE and record.reason is Reason.ARRIVE_SCOPE
    return narrow and len(finding.accesses) > 1


def _operation_over(finding: Finding, record: FindingRecord) -> bool:
    return _has_release(finding, record) and finding.pair[0].asynchronous is not None and not in_tensor_memory(record)


def _read_over(finding: Finding, record: FindingRecord) -> bool:
    rank = record.offset // (record.geometry.cta_bytes or 1)
    own = in_tensor_memory(record) or (not is_global(record) and finding.pair[0].cluster_rank == rank)
    return _has_release(finding, record) and finding.hazard == "WAR" and own


TOLERANCES: Final = (
    Tolerance("warning", f"shipped pipelines end like this, and {_KEPT}", _pipeline_ends),
    # The first access of the pair leaves nothing that another CTA must see.
    Tolerance("warning", "the operation is over before the signal", _operation_over),
    Tolerance("warning", "the read of its own CTA's memory is over before the signal", _read_over),
)


def with_lost_updates(findings: list[Finding]) -> list[Finding]:
    """Threads that update the same bytes and store the same value lose updates, unless their loads are ordered before these stores."""
    torn = {(each.kernel, each.pair[-1].site) for each in findings if each.hazard != "WAW" and each.situation in _TORN}
    return [replace(each, severity="error") if _loses(each, torn) else each for each in findings]


def _loses(finding: Finding, torn: set[tuple[str, tuple[str, int, int, str]]]) -> bool:
    return finding.situation == _SAME_VALUE and (finding.kernel, finding.pair[-1].site) in torn
