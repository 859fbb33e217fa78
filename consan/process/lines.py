"""The line of the program at which an exception was raised."""

from __future__ import annotations

import functools
import os
import sysconfig
import types
from pathlib import Path
from typing import Final

from consan._errors import ConsanError

_OWN: Final = str(Path(__file__).resolve().parents[1]) + os.sep


def users(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback from the program's first frame on."""
    while traceback is not None and _is_own(traceback):
        traceback = traceback.tb_next
    return traceback


def located(error: ConsanError) -> ConsanError:
    """The same error, with the last line of the user's program before it."""
    with_line = ConsanError(f"{place(error, '', ': ')}{error}")
    with_line.exit_code = error.exit_code
    return with_line


def place(error: BaseException, before: str, after: str = "") -> str:
    """The last line of the user's program before an error; empty if there is none.

    Frames of installed packages, and of libraries that consan calls, are not the user's, unless there are no others.
    """
    found, step = list[tuple[str, int]](), users(error.__traceback__)
    while step is not None and not _is_own(step):
        found.append((step.tb_frame.f_code.co_filename, step.tb_lineno))
        step = step.tb_next
    own = [each for each in found if not os.path.abspath(each[0]).startswith(_installed())]
    file, line = (own or found or [("", 0)])[-1]
    return f"{before}{file}:{line}{after}" if file else ""


def _is_own(traceback: types.TracebackType) -> bool:
    return os.path.abspath(traceback.tb_frame.f_code.co_filename).startswith(_OWN)


@functools.cache
def _installed() -> tuple[str, ...]:
    paths = (sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib"))
    return tuple({each + os.sep for each in paths if each})
