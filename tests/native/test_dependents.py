"""Programmatic dependents of native programs on a machine without a GPU: in a stream, in a graph, behind an event of a launch (R-GM14)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from planted import plant

from consan.libcuda import launch_calls, stream_calls
from consan.native.program import NativeProgram
from consan.native.run import run_native
from consan.reports.model import Report
from consan.session.comparing import streams
from consan.session.planning.options import SessionOptions

SOURCE = Path(__file__).parent / "dependents_program.cu"
pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dependents")
    words = ["nvcc", "-std=c++17", "-arch=compute_90", "-lineinfo", "-cudart", "shared", "-o", "program", str(SOURCE)]
    subprocess.run(words, check=True, capture_output=True, cwd=folder)
    return folder / "program"


def ran(program: Path, steps: str) -> Report:
    status, report, _ = run_native(NativeProgram(str(program), (program.name, *steps.split())), SessionOptions.of({"device": "cpu"}))
    assert status == 0, str(report)
    return report


EARLY, CHAIN, STREAMS = "no-grid-wait", "no-chained-wait", "no-stream-edge"
# The steps of a program, and what is found.
PROGRAMS = {
    "first chained-second": "",
    "first chained-early": EARLY,
    "first early": "",
    "first chained-between chained-second": "",
    "first chained-hasty chained-second": CHAIN,
    "capture first chained-second launch": "",
    "capture first chained-early launch": EARLY,
    "capture first chained-hasty chained-second launch": CHAIN,
    "first record wait plain": "",
    "first+event wait second": "",
    "first+event wait early": EARLY,
    "first+event wait plain": EARLY,
    "first+event wait copy": EARLY,
    "first+event wait between plain": "",
    "first+event wait hasty plain": STREAMS,
    "first+event wait copy second": f"{EARLY} {STREAMS}",
    "first+event sync other second": STREAMS,
    "first between+event wait plain": "",
    "first chained-hasty+event wait plain": STREAMS,
    "first+begun wait second": STREAMS,
    "first between+begun wait plain": "",
    "first+event record wait plain": "",
}


@pytest.mark.parametrize("steps", PROGRAMS)
def test_dependents(program: Path, steps: str) -> None:
    report, found = ran(program, steps), PROGRAMS[steps]
    assert {each.situation for each in report.findings} == set(found.split()), str(report)
    assert report.verdict == ("violations" if found else "clean"), str(report)


FAULTS = {
    "a wait sees no launch with an event": (streams, "self._waited |= reached.waited", "pass", "Stream.wait", "first+event wait second"),
    "an event of a launch is one behind it": (
        launch_calls, "event.begun(stream, waited=waited)", "event.record(stream)", "kernel_work", "first+event wait early",
    ),
    "an event of a launch that was not read": (
        launch_calls, "for event, waited in recorded:", "for event, waited in ():", "kernel_work", "first+event wait second",
    ),
    "a launch completion event is a programmatic one": (
        stream_calls, "waited=waited", "waited=True", "EventHandle.begun", "first+begun wait second",
    ),
    "the wait of the next launch is that of all": (streams, "= (number, place), NONE", "= (number, place), self._waited", "Stream.launched",
                                                   "first+event wait copy second"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(program: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, where, steps = FAULTS[fault]
    plant(monkeypatch, module, old, new, where)
    with pytest.raises(AssertionError):
        test_dependents(program, steps)
