"""`consan advise FILE`: the barriers, waits and fences of a kernel that nothing recorded in one launch needs.

The launch is that of `consan check`, on the virtual machine, with global memory recorded where that is possible. Counts only: what an
instruction costs is for a chip to tell.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from consan import options
from consan._errors import UsageError
from consan.commands.check import RequestedLaunch, add_launch_options, launch_given, show_kernels
from consan.files import check_writable, write_file
from consan.reports import model
from consan.reports.model import EXIT_INCOMPLETE, EXIT_VIOLATIONS, VIOLATIONS, Report
from consan.reports.patches import edited

if TYPE_CHECKING:
    from consan.session.advice import Advice, AdviceLine

EVIDENCE = "This is evidence of these runs and sizes, not a proof."
_HEADS: tuple[tuple[str, Callable[[AdviceLine], bool]], ...] = (
    ("not needed, alone and together", lambda line: line.together),
    ("not needed alone, but needed once those above are gone", lambda line: line.need == "not needed" and not line.together),
    ("needed", lambda line: line.need == "needed"),
    ("not assessed", lambda line: line.need == "not assessed"),
)


class AdviseCommand:
    """Run one kernel once, and ask what it would do with less."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", metavar="FILE", help="CUDA C++ (.cu) or PTX (.ptx)")
        add_launch_options(parser)
        options.add(parser, options.SESSION, "checking")
        group = parser.add_argument_group("output")
        group.add_argument("--time", action="store_true", help="time the kernel without each of them, on this machine's GPU")
        group.add_argument("-o", "--output", metavar="FILE", help="write the list as JSON to this file")

    def run(self, args: argparse.Namespace) -> int:
        """Launch, ask, print."""
        from consan.session.advice import Advice

        if not launch_given(args):
            show_kernels(args)
        if args.device not in ("auto", "cpu"):
            raise UsageError(f"--device {args.device}: consan advise counts on the virtual machine (--device cpu)")
        check_writable(args.output)
        args.device, args.global_memory = "cpu", "off" if args.global_memory == "off" else "on"
        advice = Advice()
        requested = RequestedLaunch(args)
        report = requested.run(args, advice.listen)
        print("\n".join(_text(advice, report)))
        if args.time:
            print("\n".join(_times(requested, args, advice)))
        if args.output is not None:
            write_file(args.output, json.dumps(_json(advice, report), indent=1) + "\n")
        return EXIT_VIOLATIONS if report.verdict == VIOLATIONS else 0 if advice.lines else EXIT_INCOMPLETE


def _text(advice: Advice, report: Report) -> list[str]:
    text = [
        f"{kernel.name}: {kernel.ctas:,} CTAs recorded, {kernel.histories:,} replayed for each question"
        for kernel in report.kernels
        if kernel.ctas
    ]
    if not advice.lines:
        return [*text, "nothing that synchronises was recorded", *report.incomplete, *report.notes]
    for head, holds in _HEADS:
        lines = [line for line in advice.lines if holds(line)]
        text += ["", f"{head}:", *map(_row, lines)] if lines else []
    shown = [f"The launch has findings: {model.plural(len(report.active), 'finding')}; consan check shows them."] if report.active else []
    return [*text, "", *shown, EVIDENCE]


def _times(requested: RequestedLaunch, args: argparse.Namespace, advice: Advice) -> list[str]:
    """The cost of each superfluous statement, and of all that may go together."""
    assert requested.module is not None
    timer, plain = requested.timer(args), requested.module.text
    lines = [line for line in advice.lines if line.edits]
    rows = [f"{_row(line).split(' ran ')[0]} {timer.compare(plain, edited(plain, line.edits))}" for line in lines]
    if together := [edit for line in lines if line.together for edit in line.edits]:
        rows.append(f"  all that may go together: {timer.compare(plain, edited(plain, together))}")
    return ["", "without them, on the GPU:", *(rows or ["  nothing to time"])]


def _row(line: AdviceLine) -> str:
    place = f"{os.path.basename(line.file)}:{line.line}" if line.line else f"PTX line {line.ptx_line}"
    return f"  {line.ptx:<40} {place:<24} ran {line.ran:>12,} times{''.join(f'; {each}' for each in (line.why, *line.weaker) if each)}"


def _json(advice: Advice, report: Report) -> dict[str, Any]:
    kernels = [{"name": kernel.name, "ctas": kernel.ctas, "histories": kernel.histories} for kernel in report.kernels]
    return {
        "schema": "consan.advice/1",
        "evidence": EVIDENCE,
        "verdict": report.verdict,
        "kernels": kernels,
        "lines": [{name: value for name, value in vars(each).items() if name != "edits"} for each in advice.lines],
    }
