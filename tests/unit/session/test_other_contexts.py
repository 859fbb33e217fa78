"""A process with two contexts: each has a session, and launches of both are compared, wherever their memory is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consan.checker.judging import grid
from consan.reports.model import Report
from consan.session import other_contexts
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.device import Device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

sys.path.append(str(Path(__file__).parents[2] / "record"))
from framework_support import BLOCK, SHADOW, FakeCalls
from streams_support import Streams

from consan.toolchain.nvrtc import compile_ptx

KERNELS = """
extern "C" __global__ void fills(unsigned* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
extern "C" __global__ void collides(unsigned* out) { out[threadIdx.x] = blockIdx.x; }
extern "C" __global__ void adds(unsigned* out) { atomicAdd(out, 1u); }
extern "C" __global__ void adds_system(unsigned* out) { atomicAdd_system(out, 1u); }
extern "C" __global__ void waits(unsigned* out) {
    while (((volatile unsigned*)out)[threadIdx.x]) { }
    out[blockIdx.x * blockDim.x + threadIdx.x + 64] = threadIdx.x;
}
template <class Fence> __device__ void signal(unsigned* out, Fence fence) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = threadIdx.x;
    fence();
    if (atomicAdd_system(out + 300, 1u) > 1000) out[at] = 1;
}
extern "C" __global__ void signals(unsigned* out) { signal(out, [] { __threadfence_system(); }); }
extern "C" __global__ void signals_in_gpu(unsigned* out) { signal(out, [] { __threadfence(); }); }
extern "C" __global__ void signals_relaxed(unsigned* out) { signal(out, [] { }); }
extern "C" __global__ void follows(unsigned** out) { out[0][blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
"""


class FakeContexts:
    """The contexts of a process with two GPUs (`Contexts`)."""

    def __init__(self, process: Process, own: int) -> None:
        self.process, self.own, self.refusal, self.alone, self.several = process, own, "", False, False
        self.device, self.opens = own - 1, None

    def other(self) -> int:
        self.several = self.several or self.process.current != self.own
        return self.process.current if self.process.current != self.own else 0

    def holder(self, address: int) -> str:
        return "GPU 1" if address in self.process.of_peer else ""


class Process:
    """A program with a kernel in each of two contexts, 1 and 2. `current`: that of its thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        self.current, self.of_peer, self.refusal = 1, set[int](), ""
        self.backends = {context: Streams() for context in (1, 2)}
        self.calls = FakeCalls()
        (self.shared,) = {backend.alloc(4096) for backend in self.backends.values()}  # the same address on both
        for context, backend in self.backends.items():
            backend.contexts, backend.calls = FakeContexts(self, context), self.calls  # type: ignore[assignment]
        monkeypatch.setattr(other_contexts, "device_in", self.device_in)
        self.session = Session(SessionOptions.of({"trace_memory": 1 << 24, **options}), on=Device(self.backends[1], arena_bytes=SHADOW))
        assert self.session.followed is not None
        self.text = compile_ptx(KERNELS, arch="sm_90a").ptx
        self.launched_own: list[bool] = []

    def device_in(self, context: int, shadow_memory: int | None) -> Device:
        contexts: Any = self.backends[context].contexts
        contexts.refusal, contexts.several = self.refusal, True
        return Device(self.backends[context], arena_bytes=SHADOW)

    def launch(self, entry: str, context: int = 1, *, peer: bool = False, stream: int = 0, at: int = 0) -> None:
        """What `FrameworkModules.launching` does for an adapter. `at`: an array of the first GPU; 0: one of its own."""
        self.current, backend = context, self.backends[context]
        prepared, here = self.session.instrument_for_framework(self.text), self.session.here()
        module = backend.load(prepared.instrumented.ptx)
        self.session.attach(prepared, lambda name, data: backend.write(backend.symbol(module, name)[0], data))
        backend.alloc(4096 * context)  # the GPUs have different addresses
        args = ((at or backend.alloc(4096)).to_bytes(8, "little"),)
        if entry == "follows":
            backend.write(int.from_bytes(args[0], "little"), backend.alloc(4096).to_bytes(8, "little"))
        if peer:
            self.of_peer.add(int.from_bytes(args[0], "little"))
        there = prepared if here is self.session else here.same(prepared)
        with here.framework_launch(there, FrameworkLaunch(entry, (2, 1, 1), BLOCK, (1, 1, 1), stream, module, args=lambda: args)) as other:
            self.launched_own.append(other is None)
            backend.launch(other or module, entry, (2, 1, 1), BLOCK, args, stream=stream)

    def report(self) -> Report:
        return self.session.report()


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    return Process(monkeypatch)


def kernels(report: Report) -> dict[str, int]:
    return {kernel.name: kernel.launches for kernel in report.kernels if kernel.launches}


def test_each_context_is_checked_with_its_own_device(process: Process) -> None:
    process.launch("fills", 1)
    process.launch("fills", 2)
    report = process.report()
    assert (report.verdict, kernels(report)) == ("clean", {"fills": 2})
    assert process.launched_own == [True, True]


@pytest.mark.parametrize("context", [1, 2])
def test_a_race_is_found_in_either(process: Process, context: int) -> None:
    process.launch("fills", 1)
    process.launch("collides", context)
    assert [finding.kind for finding in process.report().findings] == ["global-race"]


Between = Callable[[Process, int, int], None]
ORDERS: dict[str, Between] = {
    "event": lambda process, first, second: process.calls.edge(first, second),
    "stream": lambda process, first, second: process.calls.call("cuStreamSynchronize", first, context=2),
    "context": lambda process, first, second: process.calls.call("cuCtxSynchronize", context=1),
    "free": lambda process, first, second: process.calls.call("cuMemFree", 1, context=2),
}
NO_ORDERS: dict[str, Between] = {
    "nothing": lambda process, first, second: None,
    "the other way": lambda process, first, second: process.calls.edge(second, first),
    "the other stream": lambda process, first, second: process.calls.call("cuStreamSynchronize", second, context=2),
    "the other context": lambda process, first, second: process.calls.call("cuCtxSynchronize", context=2),
    "the other default stream": lambda process, first, second: process.calls.call("cuStreamSynchronize", 0, context=2),
}

DEFAULTS: dict[str, Between] = {
    "stream": lambda process, first, second: process.calls.call("cuStreamSynchronize", 0, context=1),
    "nothing": NO_ORDERS["nothing"],
}


def two_launches(process: Process, between: Between, *, entry: str = "fills", default: bool = False) -> Report:
    """A launch of each GPU that write the same bytes, of the first one."""
    process.calls.call("cuCtxEnablePeerAccess", context=2)
    first = 0 if default else process.calls.given("cuStreamCreate", 1)
    second = 0 if default else process.calls.given("cuStreamCreate", 1, context=2)
    process.launch(entry, 1, stream=first, at=process.shared)
    between(process, first, second)
    process.launch(entry, 2, stream=second, at=process.shared, peer=True)
    return process.report()


@pytest.mark.parametrize("order", ORDERS)
def test_launches_of_two_gpus_with_an_order_are_clean(process: Process, order: str) -> None:
    report = two_launches(process, ORDERS[order])
    assert (report.verdict, kernels(report)) == ("clean", {"fills": 2}), report.incomplete


@pytest.mark.parametrize("order", NO_ORDERS)
def test_launches_of_two_gpus_without_an_order_race(process: Process, order: str) -> None:
    report = two_launches(process, NO_ORDERS[order])
    assert [(finding.kind, finding.situation) for finding in report.findings] == [("global-race", "no-device-edge")], report.incomplete
    assert "one stream" not in report.findings[0].fix  # a stream belongs to one GPU
    assert report.findings[0].message.startswith("stream 2 of GPU 1 does not wait for stream 1 of GPU 0"), report.findings[0].message


@pytest.mark.parametrize("order", DEFAULTS)
def test_each_gpu_has_a_default_stream(process: Process, order: str) -> None:
    report = two_launches(process, DEFAULTS[order], default=True)
    assert len(report.findings) == (order != "stream"), report.incomplete


@pytest.mark.parametrize(("entry", "races"), [("adds_system", 0), ("adds", 1)])
def test_atomics_of_two_gpus_need_the_scope_of_the_system(process: Process, entry: str, races: int) -> None:
    report = two_launches(process, NO_ORDERS["nothing"], entry=entry)
    assert (len(report.findings), report.incomplete) == (races, ())


def test_a_signal_of_system_scope_may_order_two_gpus(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MOST_PEER_FLAGS", 0)  # flags are not known
    report = two_launches(process, NO_ORDERS["nothing"], entry="signals")
    assert report.verdict == "incomplete"
    assert any("they may synchronise through memory" in why for why in report.incomplete)


def test_a_signal_that_nothing_acquires_orders_no_two_gpus(process: Process) -> None:
    """Each of 128 threads releases."""
    report = two_launches(process, NO_ORDERS["nothing"], entry="signals")
    assert ({finding.situation for finding in report.findings}, report.incomplete) == ({"no-device-edge"}, ())


@pytest.mark.parametrize("room", [grid.MOST_PEER_FLAGS, 0])  # 0: flags are not known
@pytest.mark.parametrize("entry", ["signals_in_gpu", "signals_relaxed"])
def test_a_signal_of_a_narrower_scope_orders_no_two_gpus(process: Process, monkeypatch: pytest.MonkeyPatch, entry: str, room: int) -> None:
    monkeypatch.setattr(grid, "MOST_PEER_FLAGS", room)
    report = two_launches(process, NO_ORDERS["nothing"], entry=entry)
    assert {finding.situation for finding in report.findings} == {"no-device-edge"}
    assert not report.incomplete


@pytest.mark.parametrize(("edge", "name"), [(False, "cuMemcpyPeerAsync"), (True, "cuMemcpyPeerAsync"), (False, "cuMemcpyDtoDAsync")])
def test_a_copy_between_gpus_and_a_launch(process: Process, edge: bool, name: str) -> None:
    process.calls.call("cuCtxEnablePeerAccess", context=2)
    first, second = process.calls.stream(), process.calls.given("cuStreamCreate", 1, context=2)
    process.launch("fills", stream=first, at=process.shared)
    if edge:
        process.calls.edge(first, second)
    places = (1 << 50, 2, process.shared, 1, 256) if "Peer" in name else (1 << 50, process.shared, 256)
    process.calls.call(name, *places, second, context=2)
    report = process.report()
    assert [finding.hazard for finding in report.findings] == ([] if edge else ["RAW"]), report.incomplete


@pytest.mark.parametrize("peer", [False, True])
def test_a_launch_of_unknown_accesses_and_one_of_the_other_gpu(process: Process, peer: bool) -> None:
    """It counts if one of the two reaches the other GPU."""
    process.launch("fills", 2)
    process.calls.call("cuLaunchKernel", 1, 1, 1, 1, 32, 1, 1, 0, process.calls.stream(), 0, 0)
    process.launch("fills", 2, peer=peer)
    report = process.report()
    assert report.verdict == ("incomplete" if peer else "clean"), report.incomplete
    assert any("all accesses of fast are not known" in why for why in report.incomplete) is peer


def test_a_launch_that_may_wait_for_one_of_the_other_gpu_is_not_waited_for(process: Process) -> None:
    process.launch("fills", 2)
    process.launch("waits", 1, peer=True)
    report = process.report()
    assert report.verdict == "incomplete"
    assert any("it is not compared with launches of other GPUs: all its accesses are not known" in why for why in report.incomplete)


@pytest.mark.parametrize("name", ["cuIpcOpenMemHandle", "cuMemImportFromShareableHandle", "cuMulticastCreate"])
def test_memory_of_another_process_may_be_reached_by_a_loaded_pointer(process: Process, name: str) -> None:
    process.launch("follows")
    assert process.report().verdict == "clean"
    everything = process.calls.allocations[1] = 1 << 62
    process.calls.call(name, 1)
    if "Ipc" not in name:
        process.calls.call("cuMemMap", 1, everything, 0, 1)
    process.launch("follows")
    report = process.report()
    assert report.verdict == "incomplete"
    assert any("what other processes do there is not known" in why for why in report.incomplete)


def test_a_context_that_the_program_has_made_is_not_checked(process: Process) -> None:
    process.refusal = "it may end"
    process.launch("fills", 2)
    report = process.report()
    assert (report.verdict, process.launched_own) == ("incomplete", [False])
    assert any("it may end" in why for why in report.incomplete)


def test_a_report_is_taken_from_both(process: Process) -> None:
    process.launch("collides", 2)
    first = process.session.take()
    assert first is not None
    assert first.verdict == "violations"
    assert process.session.take() is None or not kernels(process.report())


def test_without_global_memory_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(monkeypatch, global_memory="off")
    process.launch("fills", 2, peer=True)
    assert process.report().verdict == "clean"
