"""Keeps the standard output for a report that a program reads: what the sanitized program prints goes to the standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable


def send_output_to_errors() -> Callable[[], None]:
    """Connect the standard output of this process, and of those that it starts, with the standard error. Returns a function that undoes it.

    Nothing is done where one of the two is no file, as in a test that captures them. A program that has closed all files has closed the
    kept one, too: the report then goes where errors go.
    """
    try:
        output, errors = sys.stdout.fileno(), sys.stderr.fileno()
        kept = os.dup(output)
    except (OSError, ValueError, AttributeError):
        return lambda: None
    sys.stdout.flush()
    os.dup2(errors, output)

    def undo() -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        with contextlib.suppress(OSError):
            os.dup2(kept, output)
            os.close(kept)

    return undo
