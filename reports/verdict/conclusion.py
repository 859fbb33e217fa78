"""From what a run has found, and what it could not check, to its report and verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from consan import late
from consan.reports.model import (
    CLEAN,
    EXIT_INCOMPLETE,
    EXIT_VIOLATIONS,
    INCOMPLETE,
    VIOLATIONS,
    Finding,
    KernelSummary,
    Report,
    Uninstrumented,
)
from consan.reports.verdict.coverage import (
    NOT_CHECKED,
    Coverage,
    coverage,
    gaps,
    installed_version,
    kernels_checked,
    not_checked,
    nothing_ran,
    of_reasons,
)
from consan.reports.words.verified import with_whole_fixes


def assemble(
    *,
    device: str,
    kernels: Iterable[KernelSummary] = (),
    findings: Iterable[Finding] = (),
    checked: Iterable[str] = (),
    uninstrumented: Iterable[Uninstrumented] = (),
    dropped: int = 0,
    evicted: int = 0,
    unchecked: Iterable[str] = (),
    covered: Iterable[Coverage] = (),
    why_nothing: str = "",
    notes: Iterable[str] = (),
    **others: Any,
) -> Report:
    """Build a report: merge and sort the findings, collect the reasons, compute the verdict.

    `unchecked`: more reasons, one sentence each, why something inside `checked` was not fully checked. `covered`: such reasons by kernel
    and area. `why_nothing`: explains a run in which no kernel was checked.
    """
    report = Report(
        verdict=INCOMPLETE,
        device=device,
        kernels=tuple(kernels),
        findings=with_whole_fixes(late.merging.merge_findings(findings)),
        checked=(),
        uninstrumented=tuple(uninstrumented),
        dropped=dropped,
        evicted=evicted,
        notes=tuple(notes),
        **{"version": installed_version(), **others},
    )
    if kernels_checked(report) or nothing_ran(report):  # launches that all ran as they are have no checked area
        report = replace(report, checked=tuple(checked))
    return concluded(report, (*coverage(report, why_nothing), *of_reasons(unchecked), *covered), not_checked=not_checked(report))


def concluded(report: Report, covered: Iterable[Coverage], **changes: Any) -> Report:
    """The report with changes, and what follows from its findings and its coverage."""
    known, changed = tuple(covered), replace(report, **changes)
    return replace(changed, verdict=verdict_of(changed.findings, known), incomplete=gaps(known))


def with_gaps(report: Report, reasons: Iterable[str], **changes: Any) -> Report:
    """The report with more reasons why it is incomplete, and other changes."""
    return concluded(report, of_reasons((*report.incomplete, *reasons)), **changes)


def verdict_of(findings: Iterable[Finding], covered: Iterable[Coverage]) -> str:
    """The only place that computes a verdict: unsuppressed errors, else gaps, else clean."""
    if any(finding.severity == "error" and finding.suppressed is None for finding in findings):
        return VIOLATIONS
    return INCOMPLETE if any(row.state == NOT_CHECKED for row in covered) else CLEAN


def exit_status(report: Report, *, strict: bool = False, allow_incomplete: bool = False) -> int:
    """The status of the command, where 0 means clean: findings, else the program's own status, else gaps."""
    if report.verdict == VIOLATIONS or (strict and report.count("warning")):
        return EXIT_VIOLATIONS
    return report.exit or (EXIT_INCOMPLETE if report.verdict == INCOMPLETE and not allow_incomplete else 0)
