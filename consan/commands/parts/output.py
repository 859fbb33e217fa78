"""`-o FILE` and `--format`, for every command alike.

A command prints its answer, or with `-o FILE` writes it there and prints one line that names the file. `run`, `stress`, `reduce` and
`replay`, which may take long, print in any case, and keep the run, the campaign, the schedule or the report in FILE.

The format is that of `--format`, else of FILE's suffix, else text. One that a command does not write is refused before anything runs.
`output` and `format` of the environment and of `pyproject.toml` are for reports: `run`, `check`, `report`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from consan._errors import ExitCode, UsageError, did_you_mean
from consan.files import check_writable, write_file
from consan.options import FORMATS

TEXT: Final = "text"
JSON: Final = "json"
DOCUMENT: Final = (TEXT, JSON)
# `-o run.json` without --format means JSON. Names without a suffix, such as /dev/stderr, mean the first format of the command.
_SUFFIXES: Final = {
    ".json": JSON, ".sarif": "sarif", ".html": "html", ".htm": "html", ".txt": TEXT, ".log": TEXT, ".md": "markdown",
}  # fmt: skip


def add_output(parser: argparse.ArgumentParser, formats: Sequence[str] = (TEXT,), help: str = "write to this file") -> Any:  # noqa: A002
    """Give a command `-o FILE`, and `--format` if it has several formats. Returns the group."""
    group = parser.add_argument_group("output")
    if len(formats) > 1:
        group.add_argument("--format", dest="form", metavar="|".join(formats), help="format; the suffix of FILE chooses it, too")
    group.add_argument("-o", "--output", dest="file_out", metavar="FILE", help=help)
    parser.set_defaults(form=None, formats=tuple(formats))
    return group


def chosen_output(args: argparse.Namespace) -> str:
    """The format of a command with `add_output`, also as `args.form`. Its file is checked. Raises UsageError."""
    args.form = choose_format(args.form, args.file_out, args.formats, f"consan {args.command}")
    check_writable(args.file_out)
    return str(args.form)


def choose_format(given: str | None, output: str | None, formats: Sequence[str] = FORMATS, who: str = "consan") -> str:
    """The requested format, else the one of the output's suffix. Raises UsageError for an unknown suffix, and for another format.

    `formats`: what `who` writes; the first one is for names without a suffix. A writer of one format takes any suffix that is not of
    another.
    """
    suffix = Path(output or "").suffix
    chosen = given or _SUFFIXES.get(suffix.lower()) or (formats[0] if not suffix or len(formats) == 1 else None)
    if chosen is None:
        known = [each for each, form in _SUFFIXES.items() if form in formats]
        hint = did_you_mean(suffix, known)
        raise UsageError(f"{output}: no format has the suffix '{suffix}'; use one of {', '.join(known)}, or say --format{hint}")
    if chosen not in formats:
        source = "--format" if given else output
        raise UsageError(f"{source}: {who} writes {' and '.join(formats)}, not {chosen}{did_you_mean(chosen, formats)}")
    return chosen


def put(args: argparse.Namespace, text: str, answer: str = "") -> int:
    """Print the text, or write it to the file of `-o` and say so in one line that begins with the answer. Returns 0.

    If writing fails, the text is printed, and the status is that of bad input: an answer must not be lost with its file.
    """
    if args.file_out is None:
        sys.stdout.write(text)
    elif keep(args.file_out, text):
        print(f"{answer}; {args.form} in {args.file_out}" if answer else f"written: {args.file_out}")
    else:
        sys.stdout.write(text)
        return int(ExitCode.USAGE)
    return 0


def keep(output: str, text: str, folder: str = "") -> bool:
    """Write a file. A full disk gives one line. `folder`: what the name is relative to."""
    try:
        write_file(output, text, folder)
    except UsageError as error:
        print(f"consan: error: {error}", file=sys.stderr)
        return False
    return True
