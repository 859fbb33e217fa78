"""Launches that a framework makes by itself, of a module that it has loaded: recorded and judged, or with called hooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from leaving_support import SHADOW, SOURCE, Background, slow_clock

from consan.session.executing import judging, recording
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.device import Device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

GRID, BLOCK = (2, 1, 1), (96, 1, 1)
RACE = """
extern "C" __global__ void waits(unsigned* out, int) {
    __shared__ unsigned values[96];
    values[threadIdx.x] = threadIdx.x;
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[95 - threadIdx.x];
}
"""


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Background:
    return slow_clock(monkeypatch)


class Framework:
    """A framework that loads a module, and launches its kernel inside a session's block."""

    def __init__(self, backend: Background, source: str, **options: Any) -> None:
        self.backend = backend
        self.session = Session(SessionOptions.of({"global_memory": "off", **options}), on=Device(backend, arena_bytes=SHADOW))
        self.prepared = self.session.instrument_for_framework(compile_ptx(source, arch="sm_90a").ptx)
        self.module = backend.load(self.prepared.instrumented.ptx)
        self.session.attach(self.prepared, lambda name, data: backend.write(backend.symbol(self.module, name)[0], data))
        self.out = backend.alloc(4 * 192)
        self.exchanged: list[bool] = []

    def launch(self, entry: str = "waits", number: int = 0, stream: int = 0) -> None:
        launch = FrameworkLaunch(entry, GRID, BLOCK, (1, 1, 1), stream, self.module)
        values = [self.out.to_bytes(8, "little"), number.to_bytes(4, "little")]
        with self.session.framework_launch(self.prepared, launch) as module:
            self.exchanged.append(module is not None)
            self.backend.launch(module or self.module, entry, GRID, BLOCK, values)

    def engines(self) -> dict[str, int]:
        self.backend.synchronize()
        return {kernel.engine: kernel.launches for kernel in self.session.report().kernels if kernel.launches}


def test_each_launch_is_recorded_and_judged(backend: Background) -> None:
    framework = Framework(backend, RACE)
    for _ in range(3):
        framework.launch()
    report = framework.session.report()
    (finding,) = report.findings
    assert (report.verdict, finding.kind, finding.ctas, framework.exchanged) == ("violations", "data-race", 2, [False] * 3)
    assert finding.count == 3 * _count_of_one(backend)
    assert framework.engines() == {"record": 3}


def _count_of_one(backend: Background) -> int:
    framework = Framework(backend, RACE)
    framework.launch()
    return framework.session.report().findings[0].count


def test_a_kernel_without_a_fault_is_clean(backend: Background) -> None:
    framework = Framework(backend, SOURCE)
    framework.launch()
    report = framework.session.report()
    assert report.verdict == "clean"
    assert "global-memory" not in report.checked
    assert (np.frombuffer(backend.read(framework.out, 4 * 192), np.uint32) == 1).all()


def test_nobody_waits_for_a_kernel_that_records_nothing(backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = Framework(backend, SOURCE)
    waited: list[float | None] = []
    monkeypatch.setattr(backend, "synchronize", lambda timeout=None: not waited.append(timeout))
    framework.launch("adds")
    assert not waited
    monkeypatch.undo()
    assert framework.engines() == {"record": 1}


@pytest.mark.parametrize(("stream", "waits"), [(0, False), (5, True)])
def test_a_launch_waits_for_its_memory_only_on_other_streams(
    stream: int, waits: bool, backend: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Background, "ordered_streams", (0, 1))
    framework = Framework(backend, RACE)
    order: list[str] = []
    synchronize, launch = backend.synchronize, backend.launch
    monkeypatch.setattr(backend, "synchronize", lambda *given: order.append("wait") or synchronize(*given))
    monkeypatch.setattr(backend, "launch", lambda *given: order.append("launch") or launch(*given))
    framework.launch(stream=stream)
    assert order[: 1 + waits] == ["wait"] * waits + ["launch"]
    assert "wait" in order[1 + waits :]
    assert framework.engines() == {"record": 1}


def test_equal_launches_of_a_kernel_that_records_nothing_are_counted(backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = Framework(backend, SOURCE)
    for _ in range(2):
        framework.launch("adds")
    started: list[Any] = []
    begin = framework.session.recording.start
    monkeypatch.setattr(framework.session.recording, "start", lambda *how, **more: (started.append(how), begin(*how, **more))[1])
    for _ in range(3):
        framework.launch("adds")
    assert not started
    framework.launch("waits")
    framework.launch("waits")
    assert len(started) == 2  # they record something
    (kernel,) = (each for each in framework.session.report().kernels if each.name == "adds")
    assert (kernel.engine, kernel.launches, kernel.ctas) == ("record", 5, 10)
    monkeypatch.setattr(backend, "capturing", lambda stream: True)
    framework.launch("adds")
    assert framework.exchanged[-1]
    monkeypatch.undo()
    framework.session.take()
    framework.launch("adds")
    assert framework.engines() == {"record": 1}


def test_no_memory_is_taken_for_shadow_cells(backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    alloc = backend.alloc_separate
    monkeypatch.setattr(backend, "alloc_separate", lambda nbytes: (taken.append(nbytes), alloc(nbytes))[1])
    framework = Framework(backend, RACE)
    framework.launch()
    monkeypatch.setattr(backend, "capturing", lambda stream: True)
    framework.launch()
    assert framework.engines() == {"record": 2}
    assert SHADOW not in taken


def test_global_memory_is_checked_if_that_is_asked_for(backend: Background) -> None:
    framework = Framework(backend, SOURCE, global_memory="on")
    framework.launch()
    report = framework.session.report()
    assert (report.verdict, "global-memory" in report.checked) == ("clean", True), report


def test_on_a_device_without_work_a_launch_into_a_graph_runs_as_it_is(backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = Framework(backend, RACE, engine="record")
    framework.launch()
    monkeypatch.setattr(backend, "capturing", lambda stream: stream == 7)
    framework.launch(stream=7)
    assert framework.exchanged == [False, True]
    report = framework.session.report()
    assert any("1 launch of waits could not be recorded: this device takes no work" in why for why in report.incomplete), report.incomplete
    assert [finding.kind for finding in report.findings] == ["data-race"]


def test_a_launch_that_a_filter_leaves_out_is_plain(backend: Background) -> None:
    framework = Framework(backend, RACE, launch_skip=1)
    framework.launch()
    framework.launch()
    assert framework.exchanged == [True, False]
    assert [finding.ctas for finding in framework.session.report().findings] == [2]


def test_a_deadlock_is_proven_from_the_record(backend: Background) -> None:
    framework = Framework(backend, SOURCE)
    backend.hangs = True
    framework.launch(number=1)
    report = framework.session.report()
    assert [finding.kind for finding in report.findings] == ["deadlock"]


def test_without_a_proof_the_report_is_incomplete_and_the_next_launch_is_recorded(backend: Background) -> None:
    framework = Framework(backend, SOURCE)
    backend.hangs = True
    framework.launch("counts", 300)
    backend.hangs = False
    framework.launch("waits")
    assert framework.exchanged == [False, False]
    report = framework.session.report()
    assert (report.verdict, report.findings) == ("incomplete", ())


def test_of_a_kernel_whose_replays_take_long_later_launches_are_sampled(backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "SLOW", -1.0)
    monkeypatch.setattr(judging, "SLOW", -1.0)
    framework = Framework(backend, RACE)
    framework.launch()
    framework.launch()
    assert framework.exchanged == [False, False]
    assert framework.engines() == {"record": 2}
    report = framework.session.report()
    assert (report.verdict, report.incomplete) == ("violations", ())
    assert "its replays take long, so of each later launch 8 more CTAs are replayed" in report.notes[0]


def test_outside_of_the_session_the_plain_form_runs(backend: Background) -> None:
    framework = Framework(backend, RACE)
    values = [framework.out.to_bytes(8, "little"), bytes(4)]
    backend.launch(framework.session.plain(framework.prepared, framework.module), "waits", GRID, BLOCK, values)
    assert framework.engines() == {}
    assert (np.frombuffer(backend.read(framework.out, 4 * 96), np.uint32) < 96).all()


def test_an_empty_launch_is_the_frameworks(backend: Background) -> None:
    framework = Framework(backend, RACE)
    launch = FrameworkLaunch("waits", (0, 1, 1), BLOCK, (1, 1, 1), 0, framework.module)
    with framework.session.framework_launch(framework.prepared, launch) as module:
        assert module is None
    assert framework.engines() == {}
