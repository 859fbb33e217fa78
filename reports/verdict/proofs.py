"""Adds to a report that a kernel is proven free of races for all of its launches, which closes gaps in its global memory."""

from __future__ import annotations

from dataclasses import replace

from consan.reports.model import AllLaunchesProof, Report
from consan.reports.verdict.conclusion import concluded
from consan.reports.verdict.coverage import GLOBAL_MEMORY, gaps, not_checked, of_reasons, rows


def with_proof(report: Report, kernel: str, proof: AllLaunchesProof) -> Report:
    """The report, its coverage and its verdict, with a proof for all launches of a kernel."""
    open_before = gaps(rows(report))
    kernels = tuple(replace(each, proof=proof) if each.name == kernel else each for each in report.kernels)
    proven = replace(report, kernels=kernels)
    still_open = gaps(rows(proven))
    reasons = (*(each for each in report.incomplete if each not in open_before), *still_open)
    closed = bool(open_before) and not still_open and GLOBAL_MEMORY not in report.checked
    checked = (*report.checked, GLOBAL_MEMORY) if closed else report.checked
    proven = replace(proven, checked=checked)
    return concluded(proven, of_reasons(reasons), not_checked=not_checked(proven))
