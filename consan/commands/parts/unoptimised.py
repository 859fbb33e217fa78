"""`consan check`: the races that a kernel has only where its source is compiled without optimisation.

An optimiser removes accesses: a store over which another one comes, a load of a value that it knows. A race of such an access is a race of
the source, which another compiler brings back. So the source is compiled a second time, without optimisation, and launched with the same
arguments, in other schedules, too. A finding of that launch only is a warning, `found without optimisation`.

Only races count. Registers of matrix products are not compared: that compiler moves them through other registers while products use them.
A launch in which an error was found is not compared: repair that one first. Behind a GPU the virtual machine makes both launches
(on_machine.py).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from consan import late
from consan._errors import ConsanError
from consan.files import read_file
from consan.launching.source import compile_text, is_cuda, read_module
from consan.options import AUTO
from consan.reports.model import VIOLATIONS, Report
from consan.reports.source.sources import embed
from consan.reports.verdict.unoptimised import schedule_notes, unknown_to, with_warnings
from consan.session.planning.options import is_quickly_compared

if TYPE_CHECKING:
    from consan.commands.check import RequestedLaunch

_OFF: Final = "off"


def is_compared(requested: RequestedLaunch, args: argparse.Namespace) -> bool:
    """Whether a launch is compared with that of the kernel without optimisation."""
    return is_cuda(args.file) and (args.unoptimized == "on" or (args.unoptimized == AUTO and _is_quick(requested)))


def _is_quick(requested: RequestedLaunch) -> bool:
    text = requested.module.text if requested.module is not None else ""
    return is_quickly_compared(requested.compiling, len(text), requested.executed)


def compiled(requested: RequestedLaunch, args: argparse.Namespace, *, optimised: bool) -> Callable[[str], str]:
    """A function that makes PTX of a text in place of the file's."""
    return lambda text: compile_text(text, args, requested.arch, optimised=optimised)


def with_unoptimised(requested: RequestedLaunch, args: argparse.Namespace, report: Report) -> Report:
    """The report, with what only the kernel without optimisation shows; on the virtual machine only."""
    if not is_cuda(args.file) or args.unoptimized == _OFF or report.device != "cpu" or report.exit or report.verdict == VIOLATIONS:
        return report
    if not is_compared(requested, args):
        return _not_compared(report, "that would take long (--unoptimized on does it)")
    make = compiled(requested, args, optimised=False)
    try:
        ptx = make(read_file(args.file))
        ran = requested.again(args, ptx, args.seed, args.explore).report
        races = late.reruns.races(ran)
        found = unknown_to(report, races)
        if found:
            search = _search(requested, args, ptx, ran)
            found = list(search.confirmed(replace(ran, findings=tuple(found))).findings)
    except ConsanError as error:
        return _not_compared(report, str(error).partition("\n")[0])
    report = embed(with_warnings(report, found)) if found else report
    report = replace(report, notes=(*report.notes, *(schedule_notes(ran) if args.explore else ())))
    why = late.reruns.why_not_compared(ran, races)
    return _not_compared(report, why) if why else report


def _search(requested: RequestedLaunch, args: argparse.Namespace, ptx: str, before: Report) -> late.reruns.Reruns:
    """The search for repairs of the source that hold with optimisation, too."""

    def run(text: str, seed: int) -> late.reruns.Ran:
        ran = requested.again(args, text, seed)
        return replace(ran, report=replace(ran.report, findings=tuple(late.reruns.judged(ran.report, before))))

    source = late.reruns.CudaSource(
        args.file, read_file(args.file), compiled(requested, args, optimised=False), compiled(requested, args, optimised=True)
    )
    module = read_module(ptx, args.file)
    return late.reruns.Reruns(module, run, requested.block, requested.cluster, requested.ends, source=source)


def _not_compared(report: Report, why: str) -> Report:
    return replace(report, notes=(*report.notes, f"not compared with the kernel without optimisation: {why}"))
