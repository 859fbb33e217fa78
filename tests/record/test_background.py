"""Launches of a framework beside which the program goes on: nobody waits for them, and nothing is lost."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from leaving_support import SHADOW, SOURCE, slow_clock
from streams_support import Streams

from consan.backends.virtual import VirtualBackend
from consan.checker.logs import launch as launch_memory, receipts
from consan.checker.logs.memory import LogMemory
from consan.checker.logs.names import sums_of
from consan.checker.logs.receipts import Receipts
from consan.instrument.record import module
from consan.process import program
from consan.session.executing import time_limit, watch
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.device import Device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

GRID, BLOCK = (2, 1, 1), (96, 1, 1)
# A race only if `number` says so.
RACES = """
extern "C" __global__ void waits(unsigned* out, int number) {
    __shared__ unsigned values[96];
    values[threadIdx.x] = threadIdx.x;
    if (number != 1) __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[(95 - threadIdx.x + number / 2) % 96];
}
extern "C" __global__ void other(unsigned* out, int) {
    __shared__ unsigned values[96];
    values[threadIdx.x] = threadIdx.x;
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[threadIdx.x ^ 1];
}
// Addresses that follow from memory.
extern "C" __global__ void scatters(unsigned* out, int rounds) {
    __shared__ unsigned values[96];
    for (int i = 0; i < rounds; ++i) {
        values[(out[(threadIdx.x + i) % 192] + threadIdx.x) % 96] = i;
        __syncthreads();
    }
    if (rounds > 1 << 20) out[threadIdx.x] = values[95 - threadIdx.x];
}
"""


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Streams:
    slow_clock(monkeypatch)
    return Streams()


class Framework:
    """A framework that launches kernels on streams, and does not wait."""

    def __init__(self, backend: Streams, source: str = RACES, **options: Any) -> None:
        self.backend = backend
        self.session = Session(SessionOptions.of({"global_memory": "off", **options}), on=Device(backend, arena_bytes=SHADOW))
        self.prepared = self.session.instrument_for_framework(compile_ptx(source, arch="sm_90a").ptx)
        self.module = backend.load(self.prepared.instrumented.ptx)
        self.session.attach(self.prepared, lambda name, data: backend.write(backend.symbol(self.module, name)[0], data))
        self.out = backend.alloc(4 * 192)

    def launch(self, number: int = 0, stream: int = 0, entry: str = "waits") -> None:
        launch = FrameworkLaunch(entry, GRID, BLOCK, (1, 1, 1), stream, self.module)
        values = [self.out.to_bytes(8, "little"), number.to_bytes(4, "little")]
        with self.session.framework_launch(self.prepared, launch) as module:
            assert module is None
            self.backend.launch(self.module, entry, GRID, BLOCK, values, stream=stream)

    def counts(self) -> tuple[str, int, int, int]:
        """The verdict, launches, CTAs, and distinct histories."""
        report = self.session.report()
        kernels = [kernel for kernel in report.kernels if kernel.launches]
        return report.verdict, *(sum(getattr(each, name) for each in kernels) for name in ("launches", "ctas", "histories"))


def test_nobody_waits_for_a_launch(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = Framework(backend)
    with monkeypatch.context() as inside:
        inside.setattr(backend, "synchronize", lambda *_: pytest.fail("the host waits"))
        inside.setattr(backend, "read", lambda *_: pytest.fail("the host waits"))
        for _ in range(5):
            framework.launch()
        assert not backend.done
    assert framework.counts() == ("clean", 5, 10, 1)


def test_the_end_of_a_program_does_not_wait_for_threads_of_consan(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = Framework(backend)
    framework.launch()
    framework.session.report()
    assert {"consan-checks", "consan-launches"} <= {thread.name for thread in threading.enumerate()}
    joined: list[str] = []
    monkeypatch.setattr(threading.Thread, "join", lambda thread, timeout=None: joined.append(thread.name))
    program.join_threads()
    assert not [name for name in joined if name.startswith("consan-")]


def test_a_module_whose_launches_get_no_log_is_named_in_each_report(backend: Streams) -> None:
    framework = Framework(backend)
    framework.session.instrument_for_framework(framework.prepared.plain, name="early.ptx", unseen="it was loaded before")
    for _ in range(2):
        framework.launch()
        report = framework.session.take()
        assert report is not None
        assert report.verdict == "incomplete"
        assert [each for each in report.incomplete if "early.ptx was not checked: it was loaded before" in each]


def test_a_race_that_only_one_launch_has_is_found(backend: Streams) -> None:
    framework = Framework(backend)
    for number in (0, 0, 1, 0, 0):
        framework.launch(number)
        backend.advance(0)
    assert framework.counts() == ("violations", 5, 10, 2)
    (finding,) = framework.session.report().findings
    assert finding.ctas == 2


def test_what_repeats_is_counted_as_often_as_it_ran(backend: Streams) -> None:
    counts = []
    for times in (1, 3):
        framework = Framework(type(backend)())
        for _ in range(times):
            framework.launch(1)
        counts.append(framework.session.report().findings[0].count)
    assert counts[1] == 3 * counts[0]


def test_the_last_launch_before_the_report_is_new(backend: Streams) -> None:
    framework = Framework(backend)
    for number in (0, 0, 0, 1):
        framework.launch(number)
    assert framework.counts() == ("violations", 4, 8, 2)


def test_findings_come_in_the_order_of_the_launches(backend: Streams) -> None:
    framework = Framework(backend)
    framework.launch(1)
    framework.launch(stream=5, entry="other")
    backend.advance(5)
    report = framework.session.report()
    assert [finding.kernel for finding in report.findings] == ["waits", "other"]


def test_more_launches_than_slips(backend: Streams) -> None:
    """The host waits for the first then: no memory is used again before its receipt was read."""
    framework = Framework(backend)
    for _ in range(receipts.SLIPS + 1):
        framework.launch(1 if not backend.made else 0)
    assert backend.done[:1] == ["launch 0"]
    assert framework.counts() == ("violations", receipts.SLIPS + 1, 2 * receipts.SLIPS + 2, 2)


def test_two_streams_share_the_variables_of_a_module_in_turn(backend: Streams) -> None:
    framework = Framework(backend)
    framework.launch(0, stream=5)
    framework.launch(1, stream=6)
    backend.advance(6)
    assert not backend.done, "the launch on the second stream comes behind that on the first"
    backend.advance(5)
    backend.advance(6)
    assert backend.done == ["launch 0", "launch 1"]
    assert framework.counts() == ("violations", 2, 4, 2)


def test_a_text_that_is_loaded_twice(backend: Streams) -> None:
    """Each of the two modules has variables of its own."""
    framework = Framework(backend)
    modules = [framework.module, backend.load(framework.prepared.instrumented.ptx)]
    for number in range(8):
        framework.module = modules[number % 2]
        framework.launch(number == 7)
        backend.advance(0)
    assert framework.counts() == ("violations", 8, 16, 2)


def test_a_large_launch_is_summed_by_the_device(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_memory, "FEWEST_ON_DEVICE", 1)
    ran: list[str] = []
    run = backend.work.run
    monkeypatch.setattr(backend.work, "run", lambda handle, entry, *how: (ran.append(entry), run(handle, entry, *how)))
    framework = Framework(backend)
    for rounds in (2, 2, 3):
        framework.launch(rounds, entry="scatters")
    assert framework.counts() == ("clean", 3, 6, 2)
    assert ran == ["consan_sums"] * 2


def test_a_receipt_that_does_not_come_is_told(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = Framework(backend)
    framework.launch()
    with monkeypatch.context() as inside:
        inside.setattr(backend.work, "launch", lambda *_: None)
        framework.launch()
    framework.launch()
    report = framework.session.report()
    assert (report.verdict, sum(kernel.launches for kernel in report.kernels)) == ("incomplete", 2)
    assert report.incomplete == ("waits: a launch was not checked: its receipt did not come",)


def test_full_logs_are_cleared_for_each_launch(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMPACT", False)
    framework = Framework(backend)
    for number in (0, 0, 1, 0, 0):
        framework.launch(number)
        backend.advance(0)
    assert framework.counts() == ("violations", 5, 10, 2)


def test_a_full_log_is_told(backend: Streams) -> None:
    framework = Framework(backend, trace_memory=1 << 17)
    for rounds in (3, 400, 3):
        framework.launch(rounds, entry="scatters")
        backend.advance(0)
        framework.session.frameworks.background.settle()  # the memory is for one log
    report = framework.session.report()
    assert report.verdict == "incomplete"
    assert [why for why in report.incomplete if "ran out of room" in why and why.startswith("scatters: 2 CTAs")], report.incomplete


@pytest.mark.parametrize("fails_at", [0, 2, 3])
def test_a_fault_is_told_of_the_launch_that_made_it(fails_at: int, backend: Streams) -> None:
    """The logs of earlier launches were read before it: they are lost with the device otherwise."""
    framework = Framework(backend)
    backend.fails_at = fails_at
    for number in range(4):
        framework.launch(entry="other" if number == fails_at else "waits")
        if number < fails_at:
            backend.advance(0)
            for sent in list(framework.session.frameworks.background.sent):
                framework.session.frameworks.background.wait(sent)
    report = framework.session.report()
    (finding,) = report.findings
    assert (finding.kind, finding.kernel) == ("fault", "unknown")
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (other, or a kernel beside it" in finding.message
    assert any(why.startswith("other, or a kernel beside it") and "CUDA_ERROR_ILLEGAL_ADDRESS" in why for why in report.incomplete)
    assert any(why.startswith("other left no log") for why in report.incomplete)
    assert sum(kernel.launches for kernel in report.kernels) == fails_at
    assert framework.session.record_lost


def test_a_fault_before_the_next_launch_is_told_too(backend: Streams) -> None:
    framework = Framework(backend)
    backend.fails_at = 1
    framework.launch()
    framework.launch(entry="other")
    backend.advance(0)
    launch = FrameworkLaunch("waits", GRID, BLOCK, (1, 1, 1), 0, framework.module)
    with framework.session.framework_launch(framework.prepared, launch):
        pass  # the framework gets the driver's error
    report = framework.session.report()
    assert any(why.startswith("other, or a kernel beside it") for why in report.incomplete), report.incomplete


def test_a_device_that_others_have_lost(backend: Streams) -> None:
    framework = Framework(backend)
    framework.launch()
    backend.advance(0)
    framework.launch()
    framework.session.device.lost = True
    report = framework.session.report()
    assert report.incomplete == ("waits left no log; --engine inline keeps what it found up to the fault",)
    assert sum(kernel.launches for kernel in report.kernels) == 1


def test_a_kernel_that_hangs_is_stopped(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "LOOK_EVERY", 0.01)
    framework = Framework(backend, SOURCE)
    framework.launch(entry="waits")
    assert framework.counts()[:2] == ("clean", 1)  # the virtual machine has taken its time for the first launch
    monkeypatch.setattr(watch, "LONGEST", 0.2)
    backend.hung = 1
    framework.launch(1, entry="waits")
    report = framework.session.report()
    assert [finding.kind for finding in report.findings] == ["deadlock"], report.incomplete
    assert (report.verdict, sum(kernel.launches for kernel in report.kernels)) == ("violations", 2)


def test_a_kernel_that_does_not_leave_is_read_while_it_hangs(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(watch, "LEAVING", 0.1)
    monkeypatch.setattr(watch, "LONGEST", 0.1)
    monkeypatch.setattr(backend, "poke", lambda address, data: None)
    framework = Framework(backend)
    backend.hung = 0
    framework.launch()
    framework.launch(entry="other")
    report = framework.session.report()
    assert report.verdict == "incomplete"
    assert any(why.startswith("waits did not react to the request to stop") for why in report.incomplete), report.incomplete
    assert any(why.startswith("other left no log") for why in report.incomplete), report.incomplete


def test_a_launch_that_the_driver_refuses_is_none(backend: Streams) -> None:
    framework = Framework(backend)
    launch = FrameworkLaunch("waits", GRID, BLOCK, (1, 1, 1), 0, framework.module)
    with pytest.raises(ValueError, match="refused"), framework.session.framework_launch(framework.prepared, launch):
        raise ValueError("refused")
    framework.launch()
    report = framework.session.report()
    assert sum(kernel.launches for kernel in report.kernels) == 1


def test_a_session_of_its_own_launches_waits_for_those_beside_the_program(backend: Streams) -> None:
    framework = Framework(backend, global_memory="off")
    framework.launch(1)
    assert not backend.done
    values = [framework.out.to_bytes(8, "little"), bytes(4)]
    framework.session.launch(framework.session.prepare(framework.prepared.plain), "waits", GRID, BLOCK, values)
    assert backend.done[0] == "launch 0"
    assert framework.counts()[:2] == ("violations", 2)


def test_another_session_takes_over_when_all_is_concluded(backend: Streams) -> None:
    device = Device(backend, arena_bytes=SHADOW)
    framework = Framework(backend)
    framework.session.device.unsettled = None
    del device
    framework.launch(1)
    other = Session(on=framework.session.device)
    framework.session.device.hand_to(other)
    assert backend.done == ["launch 0"]
    assert framework.counts()[:2] == ("violations", 1)


@pytest.mark.parametrize("threads", [0, 1, 31, 128, 1000, 5000])
def test_a_receipt_has_the_sums_of_all_threads(threads: int, backend: Streams) -> None:
    made, rng = Receipts(LogMemory(backend)), np.random.default_rng(threads)
    hashes = rng.integers(1, 1 << 63, (max(threads, 1), 2), np.uint64)
    hashes[threads // 2 : threads // 2 + (threads > 1)] = 0  # it has not exited
    results = rng.integers(0, 1 << 32, 300, np.uint32)
    places = [backend.alloc(max(each.nbytes, 32)) for each in (hashes, np.zeros(4, "<u8"), results)]
    backend.write(places[0], hashes)
    backend.write(places[2], results)
    slip = made.take()
    made.ask(slip, places[0], threads, places[1], (places[2], results.nbytes), 0)
    assert not slip.is_there
    backend.advance(0)
    assert slip.is_there
    receipt = slip.read(results.nbytes)
    sums = sums_of(np.ascontiguousarray(hashes[:threads].T[:, None]))
    assert (receipt.results, receipt.unended) == (results.tobytes(), int(threads > 1))
    assert receipt.sums == sums.values[:, 0].tobytes()
    assert isinstance(backend, VirtualBackend)
