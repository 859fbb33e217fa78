"""A process with two contexts: each has a session, and launches that reach memory of the other GPU are named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from consan.reports.model import Report
from consan.session import other_contexts
from consan.session.frameworks import FrameworkLaunch
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
extern "C" __global__ void follows(unsigned** out) { out[0][blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
"""


class FakeContexts:
    """The contexts of a process with two GPUs (`Contexts`)."""

    def __init__(self, process: Process, own: int) -> None:
        self.process, self.own, self.refusal, self.alone, self.several = process, own, "", False, False

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

    def launch(self, entry: str, context: int = 1, *, peer: bool = False) -> None:
        """What `FrameworkModules.launching` does for an adapter."""
        self.current, backend = context, self.backends[context]
        prepared, here = self.session.instrument_for_framework(self.text), self.session.here()
        module = backend.load(prepared.instrumented.ptx)
        self.session.attach(prepared, lambda name, data: backend.write(backend.symbol(module, name)[0], data))
        args = (backend.alloc(4096).to_bytes(8, "little"),)
        if entry == "follows":
            backend.write(int.from_bytes(args[0], "little"), backend.alloc(4096).to_bytes(8, "little"))
        if peer:
            self.of_peer.add(int.from_bytes(args[0], "little"))
        there = prepared if here is self.session else here.same(prepared)
        with here.framework_launch(there, FrameworkLaunch(entry, (2, 1, 1), BLOCK, (1, 1, 1), 0, module, args=lambda: args)) as other:
            self.launched_own.append(other is None)
            backend.launch(other or module, entry, (2, 1, 1), BLOCK, args)

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


@pytest.mark.parametrize("context", [1, 2])
def test_a_launch_that_reaches_the_other_gpu_is_not_clean(process: Process, context: int) -> None:
    process.launch("fills", context, peer=True)
    process.launch("fills", 3 - context)
    report = process.report()
    assert report.verdict == "incomplete"
    assert any("parameter 0 points to memory of GPU 1, and races between GPUs are not looked for" in why for why in report.incomplete)


def test_a_loaded_pointer_may_be_one_of_the_other_gpu(process: Process) -> None:
    process.launch("fills", 2)
    process.launch("follows", 2)
    assert any("by a pointer that is no parameter" in why for why in process.report().incomplete)


@pytest.mark.parametrize("name", ["cuIpcOpenMemHandle", "cuMemImportFromShareableHandle", "cuMulticastCreate", "cuCtxEnablePeerAccess"])
def test_memory_of_another_process_may_be_reached_by_a_loaded_pointer(process: Process, name: str) -> None:
    process.launch("follows")
    assert process.report().verdict == "clean"
    process.calls.call(name)
    process.launch("follows")
    assert process.report().verdict == "incomplete"


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
