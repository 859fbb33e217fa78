"""Adds the races that only the kernel without optimisation has: as warnings, where nothing else was found at their two places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from consan import late
from consan.reports.model import Finding, Report
from consan.reports.verdict.coverage import explored_sentence

_NOTE: Final = "note"


def unknown_to(report: Report, found: Iterable[Finding]) -> list[Finding]:
    """Those of the findings for which the report has nothing at both places; a note, as of one value, stands for notes only.

    A place without a line, as in a function for `atomicCAS` that is not inlined, may be any.
    """
    known = {(_places(each), each.severity == _NOTE) for each in report.findings}
    return [
        each for each in found if not any(_may_be(_places(each), places) and (each.severity == _NOTE or not note) for places, note in known)
    ]


def _may_be(places: frozenset[tuple[str, int]], known: frozenset[tuple[str, int]]) -> bool:
    named = {each for each in places if each[0]}
    return places == known or (len(named) < len(places) and bool(named) and named <= known)


def with_warnings(report: Report, found: Iterable[Finding]) -> Report:
    """The report, with findings of the kernel without optimisation. Warnings do not change the verdict."""
    return replace(report, findings=late.merging.sort_findings((*report.findings, *map(_as_warning, found))))


def schedule_notes(ran: Report) -> Iterator[str]:
    """The schedules that were looked at, for each kernel on whose text without optimisation the schedule may have an effect."""
    for kernel in ran.kernels:
        if kernel.schedules is not None and not kernel.schedules.holds:
            seen = explored_sentence(kernel.schedules) or "no other schedule was run"
            yield f"{late.names.kernel_name(kernel.name)} without optimisation: {seen}"


def _places(finding: Finding) -> frozenset[tuple[str, int]]:
    return frozenset((access.file, access.line) for access in finding.pair)


def _as_warning(finding: Finding) -> Finding:
    """As the report has it: the user does not have the PTX whose lines and edits these would be."""
    fix = finding.verified
    accesses = tuple(replace(each, ptx_line=0) for each in finding.accesses)
    return replace(finding, severity="warning", unoptimized=True, accesses=accesses, verified=fix and replace(fix, edits=()))
