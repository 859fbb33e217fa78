"""Launches that do what earlier ones did take a prepared way: all are counted, and none is missed that does something else."""

from __future__ import annotations

import functools
import time
import weakref
from typing import Any

import framework_support
import numpy as np
import pytest
import test_background
from framework_support import FakeCalls
from leaving_support import SOURCE, slow_clock
from planted import plant
from streams_support import LOOPS, Streams
from test_background import BLOCK, GRID, RACES

from consan.backends.driver import MADE
from consan.reports.source.variables import Argument
from consan.session.executing import in_flight, recording, time_limit, watch
from consan.session.framework_launch import FrameworkLaunch
from consan.session.repeated_launch import NOT_REPEATED


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Streams:
    slow_clock(monkeypatch)
    monkeypatch.setattr(time_limit, "LOOK_EVERY", 60.0)  # its look takes launches over
    return Streams()


TWO = f"""{RACES}
extern "C" __global__ void turns(unsigned* out, int number) {{
    __shared__ unsigned values[96];
    values[threadIdx.x] = number;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[(threadIdx.x + 1) % 96];
}}
"""


class Framework(test_background.Framework):
    """A framework whose adapter asks how later launches are made. `short`: which launches took the prepared way."""

    def __init__(self, backend: Streams, source: str = RACES, **options: Any) -> None:
        super().__init__(backend, source, **options)
        self.known: dict[tuple[int, str], Any] = {}
        self.short: list[bool] = []
        self.fails = False
        self.named: list[Argument] = []  # the buffer of each launch that was named
        self.array = np.zeros(1)

    def _buffers(self, array: object) -> tuple[Argument, ...]:
        self.named.append(Argument(f"argument {len(self.named)}", self.out, 4 * len(self.named) + 4))
        return tuple(self.named[-1:])

    def launch(self, number: int = 0, stream: int = 0, entry: str = "waits") -> None:
        values = [self.out.to_bytes(8, "little"), number.to_bytes(4, "little")]

        def make() -> None:
            if self.fails:
                raise ValueError("refused")
            self.backend.launch(self.module, entry, GRID, BLOCK, values, stream=stream)

        repeated = self.known.get((stream, entry))
        self.short.append(repeated is not None and repeated.make(lambda: tuple(values), make, ()) is not NOT_REPEATED)
        if self.short[-1]:
            return
        named = functools.partial(self._buffers, self.array)
        launch = FrameworkLaunch(entry, GRID, BLOCK, (1, 1, 1), stream, self.module, args=lambda: tuple(values), buffers=named)
        with self.session.framework_launch(self.prepared, launch):
            make()
        self.known[stream, entry] = self.session.frameworks.repeated(self.prepared, launch)

    def repeat(self, times: int, number: int = 0, stream: int = 0, entry: str = "waits") -> None:
        """Launch, and let the device work."""
        for _ in range(times):
            self.launch(number, stream, entry)
            self.backend.advance(stream)
            if not self.short[-1]:
                time.sleep(0.02)  # for the thread that checks

    def learn(self, stream: int = 0, entry: str = "waits") -> int:
        """Launch until a launch takes the prepared way. Gives how many were made."""
        for times in range(1, 200):
            self.repeat(1, 0, stream, entry)
            if self.short[-1]:
                return times
        raise AssertionError("no launch takes the prepared way")


def test_launches_that_repeat_are_counted(backend: Streams) -> None:
    framework = Framework(backend)
    made = framework.learn() + 12
    framework.repeat(12)
    assert framework.short[-12:] == [True] * 12
    assert framework.counts() == ("clean", made, 2 * made, 1)
    assert len(backend.done) == made


NOTES = """
extern "C" __global__ void notes(unsigned* out, int number) {
    __shared__ unsigned value;
    if (threadIdx.x == 0) value = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0 && number < 9) value = 1;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = value + number;
}
extern "C" __global__ void races(unsigned* out, int number) {
    __shared__ unsigned value;
    if (threadIdx.x == 0) value = 0;
    __syncthreads();
    value = threadIdx.x;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = value + number;
}
"""


def noted(backend: Streams, entry: str, more: int) -> tuple[int, int, str]:
    """Launch until a launch takes the prepared way, and `more`. Gives launches, how often the report has its note, and the verdict."""
    framework = Framework(backend, NOTES)
    made = framework.learn(entry=entry) if more else 1
    framework.repeat(more or 1, entry=entry)
    report = framework.session.report()
    (finding,) = report.findings
    assert sum(kernel.launches for kernel in report.kernels) == made + more
    return made + more, finding.count, report.verdict


def test_launches_that_repeat_a_note(backend: Streams) -> None:
    _, once, _ = noted(Streams(), "notes", 0)
    made, count, verdict = noted(backend, "notes", 12)
    assert (count, verdict) == (made * once, "clean")


def test_a_note_is_counted_for_each_launch(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted."""
    plant(monkeypatch, recording, "launches < 2", "True", "_times")
    with pytest.raises(AssertionError):
        test_launches_that_repeat_a_note(backend)


def test_launches_that_repeat_a_race_are_reported_one_by_one(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = Framework(backend, NOTES)
    framework.repeat(12, entry="races")
    assert framework.short == [False] * 12
    monkeypatch.setattr(recording.Recording, "only_notes", lambda *_: True)  # planted
    other = Framework(Streams(), NOTES)
    assert other.learn(entry="races")


def test_launches_that_repeat_read_no_buffers_and_hold_no_arguments(backend: Streams) -> None:
    framework = Framework(backend)
    framework.learn()
    long_ways = framework.short.count(False)
    framework.repeat(3)
    assert len(framework.named) == long_ways
    assert f"argument {long_ways - 1}" in framework.prepared.address_name(framework.out, framework.out + 4)
    gone = weakref.ref(framework.array)
    del framework.array
    assert gone() is None


def test_one_that_does_something_else_is_checked(backend: Streams) -> None:
    framework = Framework(backend)
    made = framework.learn() + 3
    for number in (0, 1, 0):
        framework.repeat(1, number)
    assert framework.short[-2]
    assert framework.counts() == ("violations", made, 2 * made, 2)
    (finding,) = framework.session.report().findings
    assert finding.ctas == 2


def test_one_that_does_something_else_among_launches_that_are_out(backend: Streams) -> None:
    framework = Framework(backend)
    made = framework.learn() + 4
    for number in (0, 1, 0):
        framework.launch(number)
    backend.advance(0)
    framework.launch()
    assert framework.counts() == ("violations", made, 2 * made, 2)


def test_kernels_and_streams_share_the_variables_of_a_module(backend: Streams) -> None:
    framework = Framework(backend, TWO)
    made = framework.learn() + framework.learn(entry="turns") + framework.learn(stream=5) + 8
    for _ in range(2):
        framework.repeat(1)
        framework.repeat(1, entry="turns")
        framework.repeat(1, stream=5)
    assert framework.short[-6:] == [True] * 6
    framework.launch(0, stream=5)
    framework.launch(1)
    backend.advance(0)
    assert len(backend.done) == made - 2, "the launch in the first stream comes behind that in the other"
    backend.advance(5)
    backend.advance(0)
    assert framework.counts() == ("violations", made, 2 * made, 3)


def test_a_launch_into_a_graph_goes_the_long_way(backend: Streams) -> None:
    framework = Framework(backend, TWO)
    framework.learn(entry="turns")
    framework.learn(stream=5)
    framework.launch(entry="turns")  # the stream that is captured would wait for it
    backend.captured[5] = []
    repeated = framework.known[5, "waits"]
    assert repeated.make(lambda: None, lambda: pytest.fail("it is made"), ()) is NOT_REPEATED
    assert not backend.captured.pop(5)
    assert repeated.make(lambda: None, lambda: "made", ()) == "made"


def test_a_launch_is_made_by_the_framework(backend: Streams) -> None:
    """It is none that the program makes with the kernel's handle (launches_by_others.py)."""
    framework = Framework(backend)
    framework.learn()
    assert framework.known[0, "waits"].make(lambda: (), lambda: MADE.depth, ()) == 1
    assert MADE.depth == 0


def test_no_slot_is_made_while_its_stream_is_captured(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = Framework(backend)
    framework.learn()
    framework.launch()
    repeated = framework.known[0, "waits"]
    repeated.alike.idle()
    made: list[object] = []
    monkeypatch.setattr(in_flight.Repeating, "adds_slots", lambda _, repeats: made.append(repeats))
    assert repeated.make(lambda: (), lambda: pytest.fail("it is made"), ()) is NOT_REPEATED
    backend.captured[0] = []
    assert repeated.make(lambda: (), lambda: pytest.fail("it is made"), ()) is NOT_REPEATED
    assert made == [repeated.alike]
    del backend.captured[0]


def test_arguments_that_cannot_be_read_keep_the_slots(backend: Streams) -> None:
    framework = Framework(backend)
    framework.learn()
    backend.advance(0)
    repeated = framework.known[0, "waits"]
    repeated.asks = True

    def unreadable() -> Any:
        raise RuntimeError("no memory behind it")

    with pytest.raises(RuntimeError):
        repeated.make(unreadable, lambda: pytest.fail("it is made"), ())
    repeated.asks = False
    framework.repeat(2)
    assert framework.short[-2:] == [True, True]


def test_the_host_waits_where_many_have_no_receipt(backend: Streams) -> None:
    framework = Framework(backend)
    made = framework.learn()
    done = len(backend.done)
    for _ in range(in_flight.MOST_OUT + 2):
        framework.launch()
    assert len(backend.done) > done
    assert framework.counts()[:2] == ("clean", made + in_flight.MOST_OUT + 2)


def test_a_report_begins_anew(backend: Streams) -> None:
    framework = Framework(backend)
    made = framework.learn()
    assert framework.session.take().kernels[0].launches == made
    framework.launch()
    assert not framework.short[-1]
    assert framework.session.take().kernels[0].launches == 1


def test_a_launch_that_is_refused_is_none(backend: Streams) -> None:
    framework = Framework(backend)
    made, framework.fails = framework.learn(), True
    with pytest.raises(ValueError, match="refused"):
        framework.launch()
    framework.fails = False
    framework.repeat(2)
    report = framework.session.report()
    assert sum(kernel.launches for kernel in report.kernels) == made + 2
    assert any("refused" in why for why in report.incomplete)


def test_a_fault_is_told(backend: Streams) -> None:
    framework = Framework(backend)
    made = framework.learn()
    backend.fails_at = made + 1
    for _ in range(3):
        framework.launch()
    report = framework.session.report()
    assert [finding.kind for finding in report.findings] == ["fault"]
    assert any(why.startswith("waits left no log") for why in report.incomplete)
    assert sum(kernel.launches for kernel in report.kernels) == made + 1


def test_a_kernel_that_hangs_is_stopped(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "LOOK_EVERY", 0.01)
    framework = Framework(backend, SOURCE)
    made = framework.learn()
    monkeypatch.setattr(watch, "LONGEST", 0.2)
    backend.hung = made
    framework.launch(1)
    assert framework.short[-1]
    report = framework.session.report()
    assert [finding.kind for finding in report.findings] == ["deadlock"], report.incomplete
    assert sum(kernel.launches for kernel in report.kernels) == made + 1


def stopped(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """No event is in the loop, and nothing that decides events: the host computes the same log however often threads go round it."""
    monkeypatch.setattr(time_limit, "LOOK_EVERY", 0.01)
    framework = Framework(backend, LOOPS)
    made = framework.learn()
    monkeypatch.setattr(watch, "LONGEST", 0.2)
    backend.hung = made
    framework.launch(1 << 14)
    assert framework.short[-1]
    report = framework.session.report()
    assert (report.verdict, sum(kernel.launches for kernel in report.kernels)) == ("incomplete", made + 1)
    assert [why[:46] for why in report.incomplete] == ["waits did not run to its end: stopped after 0."], report.incomplete


def test_a_loop_without_events_is_stopped(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(backend, monkeypatch)


def test_a_fault_that_loses_the_end(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit.endings, "over_time", lambda _: "")
    with pytest.raises(AssertionError):
        stopped(backend, monkeypatch)


def test_a_kernel_that_records_nothing_is_counted(backend: Streams) -> None:
    framework = Framework(backend, SOURCE)
    framework.repeat(10, entry="adds")
    assert framework.short == [False, *[True] * 9]
    assert framework.counts()[:2] == ("clean", 10)


def test_the_parameters_of_each_may_prove_it() -> None:
    """`scatters` writes where memory says: no proof. `fills` does not, but for the shift."""
    framework = framework_support.Framework()
    framework.launch("fills")
    launch = FrameworkLaunch("fills", (2, 1, 1), framework_support.BLOCK, (1, 1, 1), 0, framework.module)
    repeated = framework.session.frameworks.repeated(framework.prepared, launch)
    assert repeated is not None
    assert repeated.asks
    for shift in (0, 0, 64):  # the last one is a race
        values = (framework.out.to_bytes(8, "little"), framework.source.to_bytes(8, "little"), shift.to_bytes(4, "little"))
        assert repeated.make(lambda values=values: values, lambda: None, ()) is None
    report = framework.report()
    assert [kernel.launches for kernel in report.kernels if kernel.launches] == [4]
    assert "1 of 4 launches" in framework_support.gap(report)


def test_a_second_stream_makes_launches_go_the_long_way(backend: Streams) -> None:
    calls = FakeCalls()
    framework = framework_support.Framework(calls=calls)
    launch = FrameworkLaunch("exchanges", (1, 1, 1), framework_support.BLOCK, (1, 1, 1), 0, framework.module)
    repeated = None
    while repeated is None:
        framework.launch("exchanges", 1, 1)
        framework.backend.advance(0)
        time.sleep(0.02)
        repeated = framework.session.frameworks.repeated(framework.prepared, launch)
    assert repeated.make(lambda: None, lambda: "made", ()) == "made"
    calls.stream()
    assert repeated.make(lambda: None, lambda: "made", ()) is NOT_REPEATED


def test_the_program_gets_the_memory_back(backend: Streams) -> None:
    framework = Framework(backend)
    made = framework.learn() + 1
    repeats = framework.known[0, "waits"].alike
    repeats.end(repeats.begin(), None, made=False)  # the slot of the last launch is free
    backend.advance(0)
    device = framework.session.device
    used = device.logs.used
    device.give_back()
    assert device.logs.used < used
    framework.launch()
    assert framework.counts()[:2] == ("clean", made)


def test_another_session_takes_over(backend: Streams) -> None:
    framework = Framework(backend)
    made = framework.learn()
    framework.launch()
    other = test_background.Session(on=framework.session.device)
    framework.session.device.hand_to(other)
    assert len(backend.done) == made + 1
    framework.launch()
    assert not framework.short[-1]
