"""`consan run`: runs a program with every kernel that it compiles or loads sanitized.

A run with findings or gaps is always stored as JSON, so that it can be shown in another form without a second run: in the
folder `.consan` of the project (consan/files.py), or where -o says. A clean run is stored only if -o names the file. -o with the
suffix of another format writes that form beside it. Where a report that is not text goes to the standard output,
what the program prints goes to the standard error.
A report is written even if the program fails. Its status is kept, but violations override it (tutorials/guide/reports.md).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from consan import late, options
from consan._errors import ConsanError, ExitCode, UsageError
from consan.commands.parts.deliver import deliver, judged, shown_by
from consan.commands.parts.output import choose_format, keep
from consan.dataclass import dataclass
from consan.files import check_writable, stored_name
from consan.native.python.scripts import find_framework_program
from consan.process import children
from consan.process.program import PythonProgram, add_words, drop_idle_words, find_native, find_program, run_program
from consan.process.standard_output import send_output_to_errors
from consan.process.supervisor import Ended, can_supervise, speaking, supervise
from consan.progress import for_terminal, remark
from consan.ranks.crew import MOST_RANKS
from consan.reports import render
from consan.reports.formats.json_format import dumps
from consan.reports.model import INCOMPLETE, Report
from consan.reports.verdict.conclusion import exit_status, with_gaps
from consan.reports.verdict.coverage import unproven
from consan.session import spent
from consan.session.left_threads import end_launches
from consan.session.planning.options import SessionOptions
from consan.session.session_options import open_session
from consan.suppressions import settled
from consan.temporary import RunFolder

if TYPE_CHECKING:
    from consan.session.session import Session


@dataclass(frozen=True)
class _Output:
    """Where the report goes."""

    printed: str  # the format on the standard output
    stored: str  # the file of the run, which is JSON
    folder: str  # what names of files are relative to: the program may change the working directory
    wanted: bool  # the user has named that file
    form: str  # the format of `file`
    file: str | None
    undo: Callable[[], None]  # gives the standard output back


class RunCommand:
    """Run a program, sanitized."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments. All words after the program belong to the program."""
        parser.usage = "consan run [options] [-m module | -c code | script.py | ./program] [args...]"
        options.add(parser, (*options.SESSION, *options.STATUS, *options.RUN, *options.RANKS), "checking")
        options.add(parser, (*options.OUTPUT, *options.PICTURE, *options.TERMINAL), "output")
        add_words(parser)
        parser.set_defaults(proves_all=False)  # consan prove

    def run(self, args: argparse.Namespace) -> int:
        """Run, store, report."""
        drop_idle_words(args)
        native = find_native(args) or find_framework_program(args)
        check_ranks(args, native=native is not None)
        program = native or find_program(args)
        out = _output(args, program.label)
        if native is not None:
            status, report, places = late.native_run.run_native(native, SessionOptions.in_arguments(args))
            return _reported(settled(report, places, args.rules, status), args, out)
        assert isinstance(program, PythonProgram)
        with _folder() as folder:
            ended = supervise(folder) if args.whole_process and folder.is_dir() and can_supervise() else None
            if ended is not None:
                return ended.status if ended.spoke else _reported(_left(ended, folder, args), args, out)
            with speaking(folder) as own:
                made, failure, own.status = _sanitized(program, args, folder)
                if made is not None:
                    own.status = _reported(made, args, out, failure)
            return own.status


def _sanitized(program: PythonProgram, args: argparse.Namespace, folder: Path) -> tuple[Report | None, ConsanError | None, int]:
    """Run the program in this process. Gives its report, consan's own error and its status; no report in a child that it has forked."""
    spent.begin()
    session = open_session(SessionOptions.in_arguments(args))
    session.show(for_terminal())
    if not session.options.records:
        remark(lambda: _shadow_memory(session))
    session.source_dir = folder / "sources"
    if not folder.is_dir():
        session.note("there is no temporary folder: launches of child processes are not in this report")
    forks, process, handover = children.Forks(session, folder), os.getpid(), children.Handover(folder)
    with children.offered(folder, replace(session.options, device=session.backend.choice)), handover.kept(session):
        ended = run_program(program, session, args.ranks)
        forks.stop()
        if os.getpid() != process:  # a forked child returned here: its parent reports
            session.watch.reasons |= dict.fromkeys(ended.cut_short(replaced=session.backend.choice == "cpu"))
            forks.end()
            return None, ended.failure, _after_failure(ended.failure, ended.status)

        end_launches(session.device.lock)

        def with_children(own: Report) -> Report:
            whole = children.merged(replace(own, cost=spent.spent()), folder, handover.stem)
            reasons = ended.cut_short(replaced=own.device == "cpu")
            return with_gaps(whole, reasons) if reasons else whole

        return judged(session, args.rules, ended.status, with_children), ended.failure, ended.status


def check_ranks(args: argparse.Namespace, *, native: bool) -> None:
    """Raise UsageError where several ranks cannot run. `native`: the program is not Python."""
    if args.ranks > MOST_RANKS:
        raise UsageError(f"--ranks: expected 1 to {MOST_RANKS}, got {args.ranks}")
    if args.ranks > 1 and args.engine == options.INLINE:
        raise UsageError("--ranks: called hooks (--engine inline) know one GPU")
    if args.ranks > 1 and args.device != "cpu":
        raise UsageError("--ranks needs --device cpu: the virtual machine plays all ranks; on GPUs, start the program with torchrun")
    if args.ranks > 1 and native:
        raise UsageError("--ranks: a program that is not Python cannot be run as several ranks")


def _left(ended: Ended, folder: Path, args: argparse.Namespace) -> Report:
    """The report of a program whose process has not reported."""
    how = f"was ended by {ended.by}" if ended.by else f"ended with status {ended.status} outside of Python"
    if ended.by:
        print(f"consan: the program {how}", file=sys.stderr)
    return settled(children.left(folder, ended.pid, f"the program {how}", args.seed), (), args.rules, ended.status)


def _output(args: argparse.Namespace, label: str) -> _Output:
    """Where the report of a program goes. Raises UsageError for a suffix of no format, and for a file that cannot be written."""
    form, printed = choose_format(None, args.output), choose_format(args.format, None)
    named = Path(args.output or "").suffix.lower() in ("", ".json")
    stored = args.output if named and args.output else default_name(label)
    file = None if named else args.output
    for name in filter(None, (stored, file)):
        check_writable(name)
    undo = send_output_to_errors() if printed != "text" else lambda: None
    return _Output(printed, stored, os.getcwd(), named and args.output is not None, form, file, undo)


def _reported(report: Report, args: argparse.Namespace, out: _Output, failure: ConsanError | None = None) -> int:
    """Store and print the report. Returns the exit status."""
    report = replace(report, command=("consan", *args.argv))
    report = _with_status(report, args)
    out.undo()
    _replace_closed_output()
    wanted = out.wanted or report.findings or report.verdict == INCOMPLETE
    kept = bool(wanted) and keep(out.stored, dumps(report), out.folder)
    shown = shown_by(args)
    deliver(report, out.printed, None, shown, stored=out.stored if kept else None)
    if out.printed != "text" and kept and not args.quiet:
        print(f"consan: stored run: {out.stored}; next: consan report {out.stored}", file=sys.stderr)
    written = out.file is None or keep(out.file, render(report, out.form, **shown), out.folder)
    _after_failure(failure, report.exit)
    return report.status or (0 if written and (kept or not wanted) else int(ExitCode.USAGE))


def _with_status(report: Report, args: argparse.Namespace) -> Report:
    """The report with its exit status. `consan prove` asks for a proof of each kernel."""
    status = exit_status(report, strict=args.strict, allow_incomplete=args.allow_incomplete)
    return replace(report, status=status or (int(ExitCode.INCOMPLETE) if args.proves_all and unproven(report) else 0))


def _replace_closed_output() -> None:
    """The program may have closed the standard output. The report then goes where errors go."""
    if getattr(sys.stdout, "closed", False):
        sys.stdout = sys.stderr
        return
    with contextlib.suppress(ValueError, AttributeError):  # not a stream of this process: nothing that the program can close
        number = sys.stdout.fileno()
        try:
            os.fstat(number)
        except OSError:
            sys.stdout = sys.stderr


def _shadow_memory(session: Session) -> str:
    return f"shadow memory: {late.hooks.describe_most(session.device.most_shadow)}"


def _after_failure(failure: ConsanError | None, status: int) -> int:
    """Print consan's own error if one ended the program. Returns the status."""
    if failure is not None:
        print(f"consan: error: {failure}", file=sys.stderr)
    return status


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """The folder for sources and reports of this run's processes, until there is one report. Forked copies of this process keep it."""
    process = os.getpid()
    try:
        folder = RunFolder("run")
    except OSError:
        yield Path(os.devnull, "consan-run")  # a full disk: nothing can be written
        return
    try:
        yield folder.path
    finally:
        if os.getpid() == process:
            folder.remove()


def default_name(label: str) -> str:
    """`<program>-<pid>.json` in the folder of stored runs."""
    return stored_name(f"{re.sub(r'[^A-Za-z0-9_.-]', '_', Path(label).name)}-{os.getpid()}.json")
