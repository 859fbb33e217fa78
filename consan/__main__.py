"""The `consan` command: parse, run one command, turn errors into one line and an exit status.

Only this file maps exceptions to a status (consan/_errors.py lists them). A user's mistake gives one clear line
and status 2. A defect of consan gives one line, status 70, and how to get the traceback. Ctrl-C and SIGTERM give 130, as in a shell.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final, NoReturn

from consan import late, options
from consan._errors import ConsanError, ExitCode, UsageError, did_you_mean
from consan.commands import COMMANDS
from consan.commands.parts.base import Parser, warn_of_the_cache
from consan.process.collector import collect_seldom
from consan.process.termination import terminable
from consan.reports.formats import look
from consan.reports.formats.visible import visible_lines
from consan.reports.verdict.coverage import installed_version

DEBUG: Final = "CONSAN_DEBUG"
BROKEN_PIPE: Final = 141
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _Version(argparse.Action):
    """Print the version. It is looked up only on use."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        """Print and exit."""
        print(f"consan {installed_version()}")
        parser.exit()


def build_parser(wanted: str | None = None) -> argparse.ArgumentParser:
    """The parser: all command names, and the arguments of the wanted one."""
    parser = Parser(prog="consan", description="Find races and missing waits in GPU kernels.", allow_abbrev=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version")
    parser.set_defaults(parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", parser_class=Parser)
    for entry in COMMANDS:
        one = commands.add_parser(entry.name, help=entry.help, description=entry.help, allow_abbrev=False)
        if entry.name == wanted:
            command = entry.load()
            command.prepare(one)
            one.set_defaults(run=command.run, parser=one)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    _open_missing_streams()
    try:
        with terminable():
            return _run(list(sys.argv[1:] if argv is None else argv), whole_process=argv is None)
    except KeyboardInterrupt:
        print("consan: interrupted", file=sys.stderr)
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        _drop_output()  # the reader has closed the pipe
        return BROKEN_PIPE
    except ConsanError as error:
        _explain(f"consan: error: {error}")
        return int(error.exit_code)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            _drop_output()
            _explain(f"consan: error: cannot write {error.filename or 'the output'}: {error.strerror}")
            return int(ExitCode.USAGE)
        hint = "" if _debugging() else f"; {DEBUG}=1 shows the traceback"
        _explain(f"consan: internal error: {type(error).__name__}: {error}{hint}")
        return int(ExitCode.INTERNAL)


def _run(argv: list[str], *, whole_process: bool) -> int:
    wanted = next((word for word in argv if not word.startswith("-")), None)  # no option before a command takes a value
    names = [entry.name for entry in COMMANDS]
    if whole_process:
        collect_seldom()
    if wanted is not None and wanted not in names:
        raise UsageError(f"there is no command '{wanted}'{did_you_mean(wanted, names)} (see consan --help)")
    arguments, unknown = build_parser(wanted).parse_known_args(argv)
    if unknown:
        arguments.parser.refuse(unknown)
    if arguments.command is None:
        raise UsageError(f"a command is needed: {', '.join(names)} (see consan --help)")
    arguments.argv, arguments.whole_process = argv, whole_process
    configuration = late.config.load() if any(hasattr(arguments, option.name) for option in options.ALL) else late.config.Config({})
    options.fill(arguments, os.environ, configuration.texts)
    arguments.rules = late.config.rules_of(configuration, arguments)
    look.use(look.Look(getattr(arguments, "color", "auto"), getattr(arguments, "quiet", False)))
    unread = [f"nothing reads the environment variable {name}" for name in options.unknown_variables(os.environ)]
    for warning in (*configuration.warnings, *unread):
        print(f"consan: warning: {warning}", file=sys.stderr)
    status: int = arguments.run(arguments)
    sys.stdout.flush()
    warn_of_the_cache()
    return status


def _open_missing_streams() -> None:
    """Replace closed streams (`>&-`), so that printing does not fail."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _drop_output() -> None:
    """Drop buffered output, so that the interpreter's flush at exit does not raise again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(line: str) -> None:
    print(visible_lines(line), file=sys.stderr)
    if _debugging():
        traceback.print_exc()


def _debugging() -> bool:
    return os.environ.get(DEBUG, "") not in ("", "0")


if __name__ == "__main__":
    sys.exit(main())
