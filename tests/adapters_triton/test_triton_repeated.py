"""A launch of Triton that repeats, up to a driver that does nothing: how much Python runs for it, and who hears of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

triton = pytest.importorskip("triton", reason="Triton is not installed")
sys.path.append(str(Path(__file__).parents[1] / "bench"))
from bench_jit import JitProgram, calls, settled  # noqa: E402 - needs Triton
from bench_launch import NullLibrary  # noqa: E402

MOST_CALLS = 2  # of functions of consan in a launch: they take the place of two of Triton's


@pytest.fixture
def program(tmp_path: Path) -> Iterator[JitProgram]:
    made = JitProgram(NullLibrary(str(tmp_path)))
    made.launch()
    yield made
    made.close()


def test_calls_of_python(program: JitProgram) -> None:
    alone = calls(program.launch)
    session = program.begin()
    settled(program.launch)
    before = program.library.calls
    under = calls(program.launch)
    assert under["consan"] <= MOST_CALLS, under
    assert under.total() <= alone.total(), (under, alone)
    assert (program.library.calls - before) / 100 == 2  # with the one that asks for the context
    report = session.report()
    assert (report.verdict, [kernel.launches for kernel in report.kernels]) == ("clean", [350])


@pytest.mark.parametrize("name", ["launch_enter_hook", "launch_exit_hook"])
def test_hooks_of_the_program_hear_of_repeated_launches(program: JitProgram, name: str) -> None:
    program.begin()
    settled(program.launch)
    assert program.driver.heard == [None, None, None]
    heard: list[Any] = []
    chain = getattr(triton.knobs.runtime, name)
    chain.add(heard.append)
    try:
        program.launch()
    finally:
        chain.remove(heard.append)
    program.launch()
    assert [metadata.get()["name"] for metadata in heard] == ["total"]
    assert program.driver.heard == [None, None, None]


def test_a_chain_that_the_program_replaces(program: JitProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    program.begin()
    settled(program.launch)
    heard: list[Any] = []
    monkeypatch.setattr(triton.knobs.runtime, "launch_enter_hook", heard.append)
    program.launch()
    assert [metadata.get()["name"] for metadata in heard] == ["total"]
