"""Errors that users may see, and the exit status each one stands for.

Three things are never mixed (README, "Exit codes"): a race in the user's kernel is a *finding* and never an exception;
something consan cannot handle is `NotSupported`; a broken tool or environment is `InternalError` or `EnvironmentFailure`.
Only `consan.__main__` turns them into an exit status.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable


class ExitCode(enum.IntEnum):
    """Exit status of the `consan` command (table in tutorials/guide/reports.md)."""

    OK = 0
    USAGE = 2
    VIOLATIONS = 66
    INCOMPLETE = 67
    INTERNAL = 70
    INTERRUPTED = 130


class ConsanError(Exception):
    """An error with one clear line for the user and the exit status it stands for."""

    exit_code: ExitCode = ExitCode.INTERNAL


class UsageError(ConsanError):
    """Bad input: a wrong argument, a file that is not there, PTX that does not parse, a missing driver that was asked for."""

    exit_code = ExitCode.USAGE


class NotSupported(UsageError):  # noqa: N818
    """Valid input that this version of consan cannot handle; says what and where."""


class EnvironmentFailure(UsageError):  # noqa: N818
    """A library, driver or device that the command needs is missing; says which and how to get it."""


class Interrupted(ConsanError):  # noqa: N818
    """Ctrl-C or SIGTERM came before there was a result to keep."""

    exit_code = ExitCode.INTERRUPTED


class InternalError(ConsanError):
    """consan itself failed."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean NAME?` for the nearest known name; nothing if none is near."""
    near = [name for name in difflib.get_close_matches(word, list(known), n=1, cutoff=0.5) if name != word]
    return f"; did you mean {near[0]}?" if near else ""
