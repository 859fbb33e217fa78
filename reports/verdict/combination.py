"""Merges several reports into one: those of the tests of a pytest run, or of the processes of a program.

Launches and counts are summed. Equal kernels, notes and reasons appear once. Equal findings are merged (`merging.merge_findings`).
The verdict follows from all findings and all reasons.

Not handled: reports of runs with different seeds or policies (the first one's are shown).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from consan import late
from consan.reports.model import INCOMPLETE, NOTHING_RAN, Cost, KernelSummary, Report, Uninstrumented
from consan.reports.verdict.conclusion import concluded
from consan.reports.verdict.coverage import (
    AREAS,
    gaps,
    kernels_checked,
    missing,
    not_checked,
    nothing_ran,
    of_reasons,
    rows,
    says_nothing_ran,
    united,
)

_COUNTS = (
    "launches",
    "unchecked",
    "proven_launches",
    "ctas",
    "histories",
    "recalled",
    "global_accesses",
    "global_compared",
    "global_proven",
    "global_checked",
    "global_ctas",
)  # of a kernel


def combine(reports: Sequence[Report], **others: Any) -> Report:
    """One report. `others` are fields to set in it. Needs at least one report."""
    first = reports[0]
    findings = late.merging.merge_findings(finding for report in reports for finding in report.findings)
    combined = Report(
        verdict=INCOMPLETE,
        device=", ".join(_once(report.device for report in reports)),
        kernels=_kernels(kernel for report in reports for kernel in report.kernels),
        findings=findings,
        checked=_checked(reports),
        uninstrumented=_uninstrumented(kernel for report in reports for kernel in report.uninstrumented),
        dropped=sum(report.dropped for report in reports),
        evicted=sum(report.evicted for report in reports),
        exit=first.exit,
        seed=first.seed,
        policy=first.policy,
        notes=_once(note for report in reports for note in report.notes),
        command=first.command,
        sources=_sources(reports),
        tests=tuple(test for report in reports for test in report.tests),
        version=first.version,
        cost=_cost([report.cost for report in reports if report.cost is not None]),
    )
    return concluded(combined, of_reasons(_reasons(reports, combined)), not_checked=not_checked(combined), **others)


def _checked(reports: Sequence[Report]) -> tuple[str, ...]:
    """The areas that were checked. A report without a checked kernel says nothing about an area that others may lack."""
    speaking = [report for report in reports if kernels_checked(report)] or reports
    lacking = {area for area in AREAS if any(area not in report.checked for report in speaking)}
    return tuple(name for name in _once(name for report in reports for name in report.checked) if name not in lacking)


def _reasons(reports: Sequence[Report], combined: Report) -> tuple[str, ...]:
    """All reasons. "Nothing was checked" stays only if no report checked a kernel; reasons with an explanation are preferred.

    What one report did not look at, another may have: the gaps of kernels follow from the sums. Those that are `missing` stay.
    """
    of_kernels = {reason for report in reports for reason in gaps(rows(report))}
    left = gaps([*rows(combined), *(each for kernel in combined.kernels for each in missing(kernel))])
    every = _once([*(reason for report in reports for reason in report.incomplete if reason not in of_kernels), *left])
    nothing = [reason for reason in every if says_nothing_ran(reason)]
    kept = [] if not nothing_ran(combined) else [reason for reason in nothing if reason != NOTHING_RAN] or nothing
    return tuple(reason for reason in every if reason in kept or reason not in nothing)


def _cost(costs: Sequence[Cost]) -> Cost | None:
    """The sum; None of none."""
    seconds, elapsed = (sum(getattr(each, name) for each in costs) for name in ("seconds", "elapsed"))
    return Cost(seconds, elapsed, sum(each.gpu_bytes for each in costs)) if costs else None


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _kernels(kernels: Iterable[KernelSummary]) -> tuple[KernelSummary, ...]:
    """Kernels with equal name and instructions are summed; two kernels that share only a name stay two."""
    sums: dict[KernelSummary, KernelSummary] = {}
    for kernel in kernels:
        none: dict[str, Any] = dict.fromkeys(_COUNTS, 0)
        same = replace(kernel, **none, schedules=None, proof=None)
        before = sums.get(same, replace(same, schedules=kernel.schedules, proof=kernel.proof))
        summed: dict[str, Any] = {name: getattr(before, name) + getattr(kernel, name) for name in _COUNTS}
        proof = kernel.proof if before.proof == kernel.proof else None
        sums[same] = replace(before, **summed, schedules=united(before.schedules, kernel.schedules), proof=proof)
    return tuple(sums.values())


def _uninstrumented(kernels: Iterable[Uninstrumented]) -> tuple[Uninstrumented, ...]:
    sums: dict[Uninstrumented, int] = {}
    for kernel in kernels:
        same = replace(kernel, launches=0)
        sums[same] = sums.get(same, 0) + kernel.launches
    return tuple(replace(kernel, launches=launches) for kernel, launches in sums.items())


def _sources(reports: Iterable[Report]) -> dict[str, dict[int, str]]:
    merged: dict[str, dict[int, str]] = {}
    for report in reports:
        for file, lines in report.sources.items():
            merged.setdefault(file, {}).update(lines)
    return merged
