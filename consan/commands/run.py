"""`consan run`: a Python program with every kernel that it compiles sanitized.

The run is stored as JSON whatever the format of the report, so that nothing has to be run again to see it differently.
A program that fails is still reported on: its status is kept, and violations win over it (DESIGN 2.1).
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import weakref
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from consan import options
from consan._errors import ConsanError, ExitCode, UsageError
from consan.commands.base import check_writable
from consan.commands.deliver import choose_format, deliver, judged, keep
from consan.commands.program import Program, execute, from_code, from_module, from_script
from consan.reports.json_format import dumps
from consan.reports.model import exit_status

if TYPE_CHECKING:
    from consan.session import Session


class RunCommand:
    """Run a program, sanitized."""

    name = "run"
    help = "run a Python program with every kernel that it compiles sanitized"

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments; all that follows the program is the program's."""
        parser.usage = "consan run [options] [-m module | -c code | script.py] [args...]"
        options.add(parser, (*options.SESSION, *options.RUN), "checking")
        options.add(parser, options.OUTPUT, "output")
        rest = argparse.REMAINDER
        parser.add_argument("-m", dest="module", nargs=rest, metavar="module", help="run a module, as python -m does")
        parser.add_argument("-c", dest="code", nargs=rest, metavar="code", help="run code given as text")
        parser.add_argument("program", nargs=rest, metavar="script.py", help="the program and its arguments")

    def run(self, args: argparse.Namespace) -> int:
        """Run, store, report."""
        program = find_program(args)
        # The report is printed; -o names the stored run, which is JSON always.
        chosen = choose_format(args.format, None)
        stored = args.output or default_name(program.label)
        check_writable(stored)
        process = os.getpid()
        session = options.open_session(args)
        status, failure = run_program(program, session)
        report = replace(judged(session, args.rules, status), command=("consan", *args.argv))
        stored = stored if os.getpid() == process else of_this_process(stored)
        kept = keep(stored, dumps(report))
        deliver(report, chosen, None, stored=stored if kept else None)
        if chosen != "text" and kept:
            print(f"consan: stored run: {stored}; next: consan report {stored}", file=sys.stderr)
        if failure is not None:
            print(f"consan: error: {failure}", file=sys.stderr)
        return exit_status(report, strict=args.strict) or (0 if kept else int(ExitCode.USAGE))


def find_program(args: argparse.Namespace) -> Program:
    """What to run: exactly one of a module, code and a script."""
    if args.module is not None:
        return from_module(*_head(args.module, "-m: the name of a module"))
    if args.code is not None:
        return from_code(*_head(args.code, "-c: code"))
    return from_script(*_head(args.program, "a program to run: script.py, -m module or -c code"))


def _head(words: list[str], expected: str) -> tuple[str, list[str]]:
    if not words:
        raise UsageError(f"expected {expected}")
    return words[0], words[1:]


def default_name(label: str) -> str:
    """`consan-<program>-<pid>.json` in the working directory."""
    return f"consan-{re.sub(r'[^A-Za-z0-9_.-]', '_', Path(label).name)}-{os.getpid()}.json"


def of_this_process(stored: str) -> str:
    """The stored run of a child that the program forked and that came back here: it must not replace its parent's."""
    path = Path(stored)
    return str(path.with_name(f"{path.stem}-{os.getpid()}{path.suffix}"))


def _note_children(session: Session) -> None:
    """A forked child has a copy of everything: what it finds does not come back here, and the report says so."""
    known = weakref.ref(session)

    def note() -> None:
        if (still_there := known()) is not None:
            still_there.note("the program forked child processes: what their kernels do is not in this report")

    os.register_at_fork(after_in_parent=note)


def run_program(program: Program, session: Session) -> tuple[int, ConsanError | None]:
    """The program's status, and the error of ours that ended it, if one did."""
    from consan import adapters

    _note_children(session)
    adapters.install(session)
    try:
        return execute(program), None
    except ConsanError as error:
        return int(error.exit_code), error
    except KeyboardInterrupt:  # while the program's threads were waited for
        return int(ExitCode.INTERRUPTED), None
    finally:
        adapters.remove()
