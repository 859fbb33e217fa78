"""Adds what the virtual machine shows of a launch that a GPU has made: other schedules, and the text without optimisation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from consan import late
from consan.reports.model import Finding, Report
from consan.reports.verdict.conclusion import with_gaps

_NOTE: Final = "the virtual machine made the launch again, to look at what a GPU does not show"


def with_machine_findings(report: Report, ran: Report, found: Iterable[Finding]) -> Report:
    """The report of a GPU, with findings of the virtual machine, and what it says of schedules."""
    known = set(map(_key, report.findings))
    new = [_repeated(each, ran.seed) for each in found if each.severity != "note" and _key(each) not in known]
    explored = {each.name: each.schedules for each in ran.kernels}
    kernels = tuple(
        each if each.schedules is None or each.schedules.holds else replace(each, schedules=explored.get(each.name) or each.schedules)
        for each in report.kernels
    )
    findings = late.merging.sort_findings((*report.findings, *new))
    notes = tuple(dict.fromkeys((*report.notes, *ran.notes, *([_NOTE] if new else []))))
    return with_gaps(report, (), findings=findings, kernels=kernels, notes=notes, sources={**ran.sources, **report.sources})


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.kernel, finding.kind, frozenset((each.file, each.line, each.file or each.ptx_line) for each in finding.pair)


def _repeated(finding: Finding, seed: int) -> Finding:
    """A finding of the machine's own schedule is that of another one than the GPU's."""
    return finding if finding.seed is not None or finding.unoptimized else replace(finding, seed=seed)
