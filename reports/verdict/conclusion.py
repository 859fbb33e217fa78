"""From what a run has found, and what it could not check, to its report and verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from consan.reports.model import (
    CLEAN,
    EXIT_INCOMPLETE,
    EXIT_VIOLATIONS,
    INCOMPLETE,
    NOTHING_RAN,
    VIOLATIONS,
    Finding,
    KernelSummary,
    Report,
    Uninstrumented,
    Unmodelled,
    kernels_checked,
    plural,
)
from consan.reports.verdict.coverage import gaps, installed_version, not_checked
from consan.reports.verdict.merging import merge_findings
from consan.reports.verified import with_whole_fixes


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
    why_nothing: str = "",
    notes: Iterable[str] = (),
    **others: Any,
) -> Report:
    """Build a report: merge and sort the findings, collect the reasons, compute the verdict.

    `unchecked`: more reasons, one sentence each, why something inside `checked` was not fully checked. `why_nothing`: explains
    a run in which no kernel was checked.
    """
    report = Report(
        verdict=INCOMPLETE,
        device=device,
        kernels=tuple(kernels),
        findings=with_whole_fixes(merge_findings(findings)),
        checked=tuple(checked),
        uninstrumented=tuple(uninstrumented),
        dropped=dropped,
        evicted=evicted,
        notes=tuple(notes),
        **{"version": installed_version(), **others},
    )
    reasons = tuple(dict.fromkeys([*(_explained(reason, why_nothing) for reason in incomplete_reasons(report)), *unchecked]))
    verdict = verdict_of(report.findings, reasons)
    return replace(report, verdict=verdict, incomplete=reasons, not_checked=not_checked(report))


def verdict_of(findings: Iterable[Finding], reasons: Iterable[str]) -> str:
    """The only place that computes a verdict: unsuppressed errors, else gaps, else clean."""
    if any(finding.severity == "error" and finding.suppressed is None for finding in findings):
        return VIOLATIONS
    return INCOMPLETE if any(True for _ in reasons) else CLEAN


def incomplete_reasons(report: Report) -> tuple[str, ...]:
    """Why the run is incomplete: one sentence for each gap, in a fixed order."""
    return (
        *_nothing_instrumented(report),
        *_unmodelled(report),
        *gaps(report),
        *(
            f"{plural(kernel.unchecked, 'launch', 'launches')} of {kernel.name} ran unchecked"
            for kernel in report.kernels
            if kernel.unchecked
        ),
        *(f"the filter names {kernel.name}, which cannot be instrumented" for kernel in report.uninstrumented if kernel.named),
        *_counted(report.dropped, "finding was dropped: the ring was full", "findings were dropped: the ring was full"),
        *_counted(report.evicted, "access record was evicted too early", "access records were evicted too early"),
    )


def _nothing_instrumented(report: Report) -> tuple[str, ...]:
    """A run whose filters exclude every launch must not be `clean`. Launches include excluded ones."""
    return () if kernels_checked(report) else (NOTHING_RAN,)


def _explained(reason: str, why_nothing: str) -> str:
    return f"{reason}: {why_nothing}" if reason == NOTHING_RAN and why_nothing else reason


def says_nothing_ran(reason: str) -> bool:
    """Whether a reason is that no kernel was checked, with or without an explanation."""
    return reason.startswith(NOTHING_RAN)


def _unmodelled(report: Report) -> tuple[str, ...]:
    """One sentence for each opcode and launched kernel, with PTX lines. Kernels that were not launched do not matter."""
    gaps: dict[tuple[str, str], list[Unmodelled]] = {}
    for kernel in (kernel for kernel in report.kernels if kernel.launches):
        for gap in kernel.unmodelled:
            gaps.setdefault((kernel.name, gap.opcode), []).append(gap)
    return tuple(
        f"{name} contains {opcode}, which is not modelled ({plural(sum(gap.count for gap in found), 'time')}, {_ptx_lines(found)})"
        for (name, opcode), found in gaps.items()
    )


def _ptx_lines(gaps: list[Unmodelled], shown: int = 5) -> str:
    numbers = sorted({gap.ptx_line for gap in gaps})
    more = f" and {len(numbers) - shown} more" if len(numbers) > shown else ""
    return f"PTX line{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:shown]))}{more}"


def _counted(number: int, one: str, many: str) -> tuple[str, ...]:
    return (f"{number:,} {one if number == 1 else many}",) if number else ()


def exit_status(report: Report, *, strict: bool = False, allow_incomplete: bool = False) -> int:
    """The status of the command, where 0 means clean: findings, else the program's own status, else gaps."""
    if report.verdict == VIOLATIONS or (strict and report.count("warning")):
        return EXIT_VIOLATIONS
    return report.exit or (EXIT_INCOMPLETE if report.verdict == INCOMPLETE and not allow_incomplete else 0)
