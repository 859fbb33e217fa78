"""Streams and events of CuPy's stand-in (R-GM14): each kind of edge, legal programs, and what a report says of a missing edge."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stream_programs import (
    CLEAN,
    CLEAN_OF_BLOCKING,
    RACY,
    RACY_OF_BLOCKING,
    SOURCE,
    Program,
    constants_written_in_another_stream,
    current_stream_of_a_block,
    findings,
    memory_given_again,
    no_edge,
    one_value,
    ran,
    variable_written_in_another_stream,
)

import consan
from consan.process.program import makes_streams
from consan.reports.formats.json_format import loads
from consan.session.comparing.array_rows import runs

Run = Callable[[Program], None]


@pytest.mark.parametrize("program", CLEAN)
def test_a_program_with_an_edge_is_clean(program: Run) -> None:
    report = ran(program)
    assert (findings(report), report.verdict) == ([], "clean")
    assert "global-memory" in report.checked


@pytest.mark.parametrize("program", RACY)
def test_a_program_without_an_edge_is_not(program: Run) -> None:
    report = ran(program)
    assert {each[:2] for each in findings(report)} == {("global-race", "no-stream-edge")}
    assert report.verdict == "violations"


@pytest.mark.parametrize("program", CLEAN_OF_BLOCKING)
def test_the_default_stream_orders_blocking_streams(program: Run) -> None:
    assert ran(program, blocking=True).verdict == "clean"


@pytest.mark.parametrize("program", RACY_OF_BLOCKING)
def test_two_blocking_streams_are_apart(program: Run) -> None:
    assert ran(program, blocking=True).verdict == "violations"


def test_the_pool_gives_memory_to_its_stream_again() -> None:
    (finding,) = ran(memory_given_again).findings
    assert (finding.situation, finding.hazard, finding.severity) == ("memory-given-again", "WAW", "error")
    assert "may still use an array at" in finding.message
    assert finding.accesses[0].bytes == finding.accesses[1].bytes


def test_variables_have_their_names() -> None:
    for program, named in ((constants_written_in_another_stream, "weights"), (variable_written_in_another_stream, "table")):
        (finding,) = ran(program).findings
        assert (finding.hazard, finding.accesses[0].name) == ("WAR", f"bytes 0..3 of {named}")


def test_stores_of_one_value_are_a_warning() -> None:
    (finding,) = ran(one_value).findings
    assert (finding.hazard, finding.severity) == ("WAW", "warning")


def test_what_the_report_says() -> None:
    (finding,) = ran(no_edge).findings
    first, second = finding.accesses
    assert (first.role, first.name, second.role, second.name) == (
        *("write", "element 0 of argument 2 (y)"),
        *("read", "element 0 of argument 1 (y)"),
    )
    assert "tream 2 does not wait for stream 1: produce and consume touch the same bytes" in finding.message
    assert "second.wait_event(first.record())" in finding.fix
    assert (finding.count, finding.ctas) == (128, 2)


def before_the_first_stream(wait: bool, **options: str) -> Any:
    """Kernels in the default stream and, in the same memory, in a stream that is made then."""
    with consan.check(device="cpu", **options) as live:
        cp: Any = importlib.import_module("cupy")
        kernel = cp.RawModule(code=SOURCE).get_function("produce")
        x, y = cp.ones(64, "f4"), cp.zeros(64, "f4")
        kernel((1,), (64,), (x, y))
        if wait:
            cp.cuda.Stream.null.synchronize()
        kernel((1,), (64,), (x, y), stream=cp.cuda.Stream(non_blocking=True))
    return live.report


LATER = """
import cupy as cp
kernel = cp.RawKernel('extern "C" __global__ void scale(float *y) { y[threadIdx.x] *= 2; }', "scale")
y = cp.ones(64, cp.float32)
kernel((1,), (64,), (y,))
second = cp.cuda.Stream(non_blocking=True)
#second.wait_event(cp.cuda.Stream.null.record())
with second:
    kernel((1,), (64,), (y,))
"""


@pytest.mark.parametrize("racy", [True, False])
def test_a_program_that_makes_its_stream_behind_the_first_launch(racy: bool, tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text(LATER if racy else LATER.replace("#", ""))
    command = (sys.executable, "-m", "consan", "run", "--device", "cpu", "-o", "r.json", "later.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    report = loads((tmp_path / "r.json").read_text())
    assert done.returncode == (66 if racy else 0), done.stdout + done.stderr
    assert {each[:2] for each in findings(report)} == ({("global-race", "no-stream-edge")} if racy else set())
    assert "global-memory" in report.checked


@pytest.mark.parametrize(
    ("text", "makes"),
    [
        ("s = cupy.cuda.Stream(non_blocking=True)", True),
        ("def f():\n    return [torch.cuda.Stream() for _ in range(2)]", True),
        ("from numba import cuda\ns = cuda.stream()", True),
        ("s = device.create_stream()", True),
        ("driver.cuStreamCreateWithPriority(0, 0)", True),
        ("torch.cuda.current_stream().synchronize()", False),
        ("print('Stream')", False),
    ],
)
def test_whether_a_text_makes_streams(text: str, makes: bool) -> None:
    assert makes_streams(compile(text, "p.py", "exec")) == makes


def test_what_came_before_the_first_stream_makes_the_report_incomplete() -> None:
    report = before_the_first_stream(wait=False)
    assert (report.findings, "global-memory" in report.checked, report.verdict) == ((), False, "incomplete")
    assert "all accesses of what the default stream did before there could be launches at the same time are not known" in " ".join(
        report.not_checked
    )
    assert "global-memory" in before_the_first_stream(wait=True).checked


def test_without_global_memory_nothing_is_compared() -> None:
    assert before_the_first_stream(wait=False, global_memory="off").verdict == "clean"


@pytest.mark.parametrize(
    "module", ["consan.session.comparing.concurrent_launches.MOST_ROWS", "consan.checker.judging.grid.MOST_CONCURRENT"]
)
def test_more_accesses_than_are_kept(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, 8)
    report = ran(no_edge)
    assert (report.findings, "global-memory" in report.checked) == ((), False)
    assert "and what may run at the same time in another stream" in " ".join(report.not_checked)


def test_more_launches_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consan.session.comparing.concurrent_launches.MOST_RUNNING", 1)
    assert ran(current_stream_of_a_block).verdict == "incomplete"


def an_index_array(p: Program) -> None:
    p.produce(p.a)
    p.z[p.cp.arange(4)] = 1


def test_an_index_array_is_not_compared() -> None:
    assert "all accesses of an assignment are not known" in " ".join(ran(an_index_array).not_checked)


@pytest.mark.parametrize(
    ("shape", "part", "starts", "nbytes"),
    [
        ((4, 4), (slice(None), slice(None)), [0], 64),
        ((4, 4), (slice(1, 3), slice(None)), [0], 32),
        ((4, 4), (slice(None), 2), [0, 16, 32, 48], 4),
        ((4, 4), (slice(None), slice(None, None, -1)), [-12], 64),
        ((2, 3, 4), (slice(None), 1, slice(0, 2)), [0, 48], 8),
    ],
)
def test_runs_of_arrays(shape: tuple[int, ...], part: Any, starts: list[int], nbytes: int) -> None:
    found, length = runs(np.zeros(shape, np.float32)[part])
    assert (sorted(found.tolist()), length) == (starts, nbytes)
