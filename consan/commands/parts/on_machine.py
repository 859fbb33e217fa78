"""`consan check` on a GPU: what only the virtual machine can show of the same launch.

A GPU runs a kernel in one schedule, as it is. The inputs of a launch follow from its options and the seed, so the virtual machine makes it
again: it explores other schedules, and compares the kernel with the one that is compiled without optimisation. A finding that only this
shows is added to the report, with the seed that repeats it on the virtual machine.

Not done after an error, for a launch of many threads or large buffers, and for one that takes the machine longer than it may explore.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from consan._errors import ConsanError
from consan.commands.parts.unoptimised import with_unoptimised
from consan.launching.room import bytes_of
from consan.launching.source import is_cuda
from consan.reports.model import VIOLATIONS, KernelSummary, Report
from consan.reports.verdict.machine import with_machine_findings
from consan.session.planning.options import MOST_MEMORY, MOST_THREADS, OFF

if TYPE_CHECKING:
    from consan.commands.check import RequestedLaunch

_SHORTEST: Final = 2.0  # seconds that the launch may take there at least


def with_machine(requested: RequestedLaunch, args: argparse.Namespace, report: Report) -> Report:
    """The report of a GPU, with what the virtual machine shows."""
    if report.device == "cpu" or report.exit or report.verdict == VIOLATIONS or not _is_wanted(args, report):
        return report
    if bytes_of(requested.specs) > MOST_MEMORY or math.prod((*requested.grid, *requested.block)) > MOST_THREADS:
        return _unexplored(report, "not explored: the launch is large for the virtual machine")
    longest = min(args.timeout or math.inf, max(args.explore, _SHORTEST))
    given = {"device": "cpu", "arch": args.arch or requested.arch, "timeout": longest, "prove": 0.0, "keep_histories": False}
    there = argparse.Namespace(**(vars(args) | given))
    try:
        other = type(requested)(there)
        made = other.run(there)
        ran = with_unoptimised(other, there, made)
    except ConsanError as error:
        return _unexplored(report, f"not explored: {str(error).partition(chr(10))[0]}")
    if made.incomplete and not made.findings:
        return _unexplored(report, f"not explored: {made.incomplete[0]}")
    return with_machine_findings(report, ran, ran.findings)


def _is_wanted(args: argparse.Namespace, report: Report) -> bool:
    """Whether another schedule, or another text, may show something."""
    explores = args.explore > 0 and any(each.schedules is not None and not each.schedules.holds for each in report.kernels)
    return explores or (is_cuda(args.file) and args.unoptimized != OFF)


def _unexplored(report: Report, why: str) -> Report:
    """The report, which says why other schedules were not looked at where they matter."""
    return replace(report, kernels=tuple(_ended(each, why) for each in report.kernels))


def _ended(kernel: KernelSummary, why: str) -> KernelSummary:
    known = kernel.schedules
    return kernel if known is None or known.holds else replace(kernel, schedules=replace(known, ended=why))
