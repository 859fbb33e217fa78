"""The line of the program that an error names."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable

import pytest

from consan._errors import UsageError
from consan.process import lines

LIBRARY = sysconfig.get_path("purelib") + "/library.py"


def error_through(*files: str) -> UsageError:
    """An error raised in functions of these files, which call one another."""

    def raised() -> None:
        raise UsageError("no")

    call: Callable[[], None] = raised
    for file in reversed(files):
        inner = call
        scope: dict[str, Callable[[], None]] = {"inner": inner}
        exec(compile("def call():\n    inner()\n", file, "exec"), scope)
        call = scope["call"]
    with pytest.raises(UsageError) as caught:
        call()
    error = caught.value
    tail = error.__traceback__.tb_next if error.__traceback__ else None  # without this file's own frame
    assert tail is not None
    *_, last = iter_frames(tail)
    last.tb_next = None
    return error.with_traceback(tail)


def iter_frames(tail: object) -> list[object]:
    frames = []
    while getattr(tail, "tb_next", None) is not None:
        frames.append(tail)
        tail = tail.tb_next  # type: ignore[attr-defined]
    return frames


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (("/home/me/prog.py",), "/home/me/prog.py:2"),
        (("/home/me/prog.py", "/home/me/own.py"), "/home/me/own.py:2"),
        (("/home/me/prog.py", LIBRARY), "/home/me/prog.py:2"),
        ((LIBRARY,), f"{LIBRARY}:2"),
    ],
)
def test_the_last_line_of_the_program(files: tuple[str, ...], expected: str) -> None:
    error = error_through(*files)
    assert lines.place(error, "at ") == f"at {expected}"
    assert str(lines.located(error)) == f"{expected}: no"
    assert lines.located(error).exit_code == error.exit_code


def test_an_error_without_frames_has_no_line() -> None:
    assert str(lines.located(UsageError("no"))) == "no"
