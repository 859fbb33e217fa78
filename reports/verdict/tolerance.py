"""Findings that are a bug by the ISA only: current hardware and shipped libraries go on (SEMANTICS 8). They become warnings."""

from __future__ import annotations

from dataclasses import replace

from consan.instrument.findings import FindingRecord, Kind, Operation, Reason
from consan.reports.model import Finding
from consan.reports.tensor_memory import in_tensor_memory


def with_tolerance(finding: Finding, found: FindingRecord) -> Finding:
    """The finding as a warning that says why, if it is one of those."""
    why = _pipeline_ends(found) if found.kind is Kind.LIFETIME else _already_over(finding, found) if found.kind is Kind.SCOPE else ""
    return replace(finding, severity="warning", message=f"{finding.message}; {why}") if why else finding


def _pipeline_ends(found: FindingRecord) -> str:
    """R-CP5: the thread waits for its bulk stores as it goes, and leaves the last of them behind."""
    done = found.completion
    if (
        done is None
        or found.reason is not Reason.EXIT
        or found.own_operation != Operation.BULK_STORE
        or not 0 < done.retired < done.commits
    ):
        return ""
    return "shipped pipelines end like this, and current hardware keeps the memory until the store has read it"


def _already_over(finding: Finding, found: FindingRecord) -> str:
    """R-SCOPE: what comes first has nothing to make visible to another CTA."""
    if found.reason is not Reason.ARRIVE_SCOPE or len(finding.accesses) < 2 or in_tensor_memory(found):
        return ""
    first = finding.pair[0]
    owner = found.offset // (found.geometry.cta_bytes or 1)
    if first.asynchronous is not None:
        return "the operation is over before the signal"
    return "the read of its own CTA's memory is over before the signal" if finding.hazard == "WAR" and first.cluster_rank == owner else ""
