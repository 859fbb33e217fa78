"""`consan advise FILE`: the barriers, waits and fences of a kernel that nothing recorded in its launches needs.

The launch is that of `consan check`, on the virtual machine, with global memory recorded where that is possible. `--runs` adds launches
with other schedules and other random arguments, and `--also` launches of other sizes. Counts only: what an instruction costs is for a chip
to tell.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import math
import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from consan import late, options
from consan._errors import UsageError
from consan.commands.check import RequestedLaunch, add_launch_options, add_shape_options, launch_given, show_kernels
from consan.commands.parts.base import Parser
from consan.commands.parts.output import DOCUMENT, JSON, TEXT, add_output, chosen_output, put
from consan.reports.counts import plural
from consan.reports.formats import advised
from consan.reports.formats.visible import visible
from consan.reports.model import EXIT_INCOMPLETE, Report
from consan.reports.source.names import kernel_name
from consan.reports.source.patches import edited
from consan.reports.verdict.conclusion import exit_status

if TYPE_CHECKING:
    from consan.session.asking.advice import Advice

HTML: Final = "html"


class AdviseCommand:
    """Run one kernel, and replay it with less synchronisation."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", metavar="FILE", help="CUDA C++ (.cu) or PTX (.ptx)")
        add_launch_options(parser)
        options.add(parser, (*options.SESSION, *options.STATUS), "checking")
        group = parser.add_argument_group("more launches")
        group.add_argument("--runs", default="1", metavar="N", help="launch N times, with other schedules and other random arguments")
        words = "launch with these options in place of those given, such as '--grid 2 --arg f32[256]=random'; may be repeated"
        group.add_argument("--also", action="append", default=[], metavar="OPTIONS", help=words)
        group = add_output(parser, (*DOCUMENT, HTML), "write the list to this file; .html has the report, too")
        group.add_argument("--time", action="store_true", help="time the kernel without each of them, on this machine's GPU")
        options.add_to(group, options.TERMINAL)

    def run(self, args: argparse.Namespace) -> int:
        """Launch, ask, print."""
        if not launch_given(args):
            show_kernels(args)
        if args.device not in ("auto", "cpu"):
            raise UsageError(f"--device {args.device}: consan advise counts on the virtual machine (--device cpu)")
        runs = options.read_as("--runs", args.runs, options.read_positive)
        write = _WRITERS[chosen_output(args)]
        args.device, args.global_memory = "cpu", "off" if args.global_memory == "off" else "on"
        advice, requested = late.advice.Advice(), RequestedLaunch(args)
        others = [(words, options.read_as("--also", words, functools.partial(_also, args))) for words in args.also]

        def more() -> Iterator[tuple[RequestedLaunch, int]]:
            for run in range(runs):
                yield from ((launch, args.seed + run) for launch in ([requested] * bool(run) + [other for _, other in others]))

        report = requested.run(args, advice.listen, more)
        written = put(args, write(advice, report, _covered(requested, others, runs)), f"verdict: {report.verdict}")
        if args.time:
            print("\n".join(_times(requested, args, advice)))
        found = exit_status(report, strict=args.strict, allow_incomplete=True)
        return found or (0 if advice.lines or args.allow_incomplete else EXIT_INCOMPLETE) or written


def _also(args: argparse.Namespace, words: str) -> RequestedLaunch:
    """A launch with some of the options replaced."""
    parser = Parser(prog="consan advise", add_help=False)
    add_shape_options(parser)
    given = copy.copy(args)
    given.args = []
    try:
        parser.parse_args(shlex.split(words), given)
    except ValueError as error:
        raise UsageError(f"{words}: {error}") from None
    given.args = given.args or args.args
    launch = RequestedLaunch(given)
    if math.prod(launch.cluster) != math.prod(RequestedLaunch(args).cluster):
        raise UsageError(f"{words}: --cluster is the same in all launches")
    return launch


def _covered(requested: RequestedLaunch, others: list[tuple[str, RequestedLaunch]], runs: int) -> str:
    """The launches, in words."""
    shapes = [f"grid {_shape(each.grid)}, block {_shape(each.block)}" for each in (requested, *(other for _, other in others))]
    also = "".join(f"; also {shape} ({words})" for shape, (words, _) in zip(shapes[1:], others, strict=True))
    seeds = f" of {runs} seeds each" if runs > 1 else ""
    return f"covered: {plural(runs * len(shapes), 'launch', 'launches')}{seeds}: {shapes[0]}{also}."


def _shape(size: tuple[int, int, int]) -> str:
    return " x ".join(map(str, size[: max(number for number, extent in enumerate(size, 1) if extent > 1 or number == 1)]))


def _text(advice: Advice, report: Report, covered: str) -> str:
    return "".join(f"{visible(line)}\n" for line in _lines(advice, report, covered))


def _lines(advice: Advice, report: Report, covered: str) -> list[str]:
    text = [
        f"{kernel_name(kernel.name)}: {kernel.ctas:,} CTAs recorded, {kernel.histories:,} replayed for each question"
        for kernel in report.kernels
        if kernel.ctas
    ]
    if not advice.lines:
        return [*text, "nothing that synchronises was recorded", *report.incomplete, *report.notes]
    shown = [f"The launch has findings: {plural(len(report.active), 'finding')}; consan check shows them."] if report.active else []
    return [*text, *advised.text(advice.lines), "", *shown, covered, advised.EVIDENCE]


def _times(requested: RequestedLaunch, args: argparse.Namespace, advice: Advice) -> list[str]:
    """The cost of each superfluous statement, and of all that may go together."""
    assert requested.module is not None
    timer, plain = requested.timer(args), requested.module.text
    lines = [line for line in advice.lines if line.edits]
    rows = [f"{advised.row_of(line).split(' ran ')[0]} {timer.compare(plain, edited(plain, line.edits))}" for line in lines]
    if together := [edit for line in lines if line.together for edit in line.edits]:
        rows.append(f"  all that may go together: {timer.compare(plain, edited(plain, together))}")
    return ["", "without them, on the GPU:", *(rows or ["  nothing to time"])]


def _json(advice: Advice, report: Report, covered: str) -> str:
    kernels = [{"name": kernel.name, "ctas": kernel.ctas, "histories": kernel.histories} for kernel in report.kernels]
    page: dict[str, Any] = {
        "schema": "consan.advice/1",
        "evidence": advised.EVIDENCE,
        "covered": covered,
        "verdict": report.verdict,
        "kernels": kernels,
        "lines": advised.as_json(advice.lines),
    }
    return json.dumps(page, indent=1) + "\n"


def _page(advice: Advice, report: Report, covered: str) -> str:
    return late.html_report.render(report, advice=advised.section(advice.lines, covered))


_WRITERS: Final[dict[str, Callable[[Advice, Report, str], str]]] = {TEXT: _text, JSON: _json, HTML: _page}
