"""The line that says how far the work is: where somebody watches, and only there."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from consan import progress
from consan.__main__ import main
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

KERNEL = """
extern "C" __global__ void k(float* out) { if (threadIdx.x == 0) out[blockIdx.x] = 1; }
"""
WORDS = ("check", "k.cu", "--device", "cpu", "--grid", "4096", "--block", "64", "--arg", "f32[4096]=zeros")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Terminal:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_PERIOD", 0.0)
    Path("k.cu").write_text(KERNEL)
    return Terminal()


def check(file: io.StringIO, *flags: str) -> int:
    """`consan check` with this standard error; pytest's own comes back with each phase of a test, so no fixture can do it."""
    with contextlib.redirect_stderr(file):
        return main((*WORDS, *flags))


def test_check_shows_modules_and_ctas_and_cleans_up(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(terminal) == 0
    shown = terminal.getvalue()
    assert "consan: compiling k.cu\r" in shown
    assert "consan: preparing k.cu\r" in shown
    assert "consan: running k: 0 of 4,096 CTAs\r" in shown
    assert shown.count(" of 4,096 CTAs") > 1  # more than one wave
    assert shown.endswith("\r\x1b[K")
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("flags", [["-q"], ["--quiet"]])
def test_quiet_shows_no_progress(flags: list[str], terminal: Terminal) -> None:
    assert check(terminal, *flags) == 0
    assert terminal.getvalue() == ""


def test_a_pipe_and_a_dumb_terminal_get_none(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert check(terminal) == 0
    assert "running" not in terminal.getvalue()
    monkeypatch.setenv("TERM", "xterm")
    assert check(pipe := io.StringIO()) == 0
    assert pipe.getvalue() == ""


def test_nothing_is_shown_in_the_first_moments(terminal: Terminal) -> None:
    line = progress.ProgressLine(terminal, delay=60.0)
    with line.module("m"), line.launch("k"):
        line.ctas(1, 2)
    assert terminal.getvalue() == ""


def test_many_launches_are_counted(terminal: Terminal) -> None:
    line = progress.ProgressLine(terminal, delay=0.0)
    for name in ("a", "b"):
        with line.module(name), line.launch(name):
            line.ctas(0, 1)
    assert terminal.getvalue().endswith("consan: running b: 0 of 1 CTAs (2 prepared, launch 2)\r\x1b[K")


def test_a_long_name_stays_on_one_line(terminal: Terminal) -> None:
    with progress.ProgressLine(terminal, delay=0.0).launch("k" * 200):
        pass
    assert max(len(part.removeprefix("\x1b[K")) for part in terminal.getvalue().split("\r")) < 80


def test_a_terminal_that_is_gone_does_not_end_the_run(terminal: Terminal) -> None:
    line = progress.ProgressLine(terminal, delay=0.0)
    terminal.close()
    done = False
    with line.launch("k"):
        line.ctas(0, 1)
        done = True
    assert done
    assert terminal.closed


def test_a_session_that_nobody_watches_is_silent() -> None:
    assert Session(SessionOptions(device="cpu")).progress is progress.SILENT
