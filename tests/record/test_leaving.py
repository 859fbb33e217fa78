"""Recorded launches on a device that runs in the background and does not end them by itself, as a GPU: who stops them, and what is proven.

The virtual machine stands in for it: it begins a launch only once the host waits without a limit, or has told the threads to leave.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consan
from consan.__main__ import main
from consan.backends.base import DeviceLost
from consan.backends.virtual import VirtualBackend
from consan.checker import launch
from consan.commands import again, check
from consan.instrument.record import leaving, record
from consan.reports.json_format import dumps
from consan.session import recording
from consan.session.device import Device
from consan.session.session import Session

SOURCE = """
typedef unsigned long long u64;
__device__ unsigned shared(void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64* b, unsigned n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared(b)), "r"(n) : "memory"); }
__device__ void arrive(u64* b) { asm volatile("{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0]; }" :: "r"(shared(b)) : "memory"); }
__device__ void wait(u64* b, unsigned parity) {
    asm volatile("{ .reg .pred p; AGAIN: mbarrier.test_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra AGAIN; }"
                 :: "r"(shared(b)), "r"(parity) : "memory");
}
// `missing` arrivals do not come. The threads above 64 wait at a barrier with a count.
extern "C" __global__ void waits(unsigned* out, int missing) {
    __shared__ u64 b;
    if (threadIdx.x == 0) init(&b, 32 + missing);
    __syncthreads();
    if (threadIdx.x < 32) arrive(&b);
    if (threadIdx.x < 64) wait(&b, 0);
    if (threadIdx.x >= 32) asm volatile("bar.sync 1, 64;" ::: "memory");
    out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
// Every CTA does what no other does, and rounds may be many.
extern "C" __global__ void differ(unsigned* out, int rounds) {
    __shared__ unsigned values[256];
    for (int i = 0; i < rounds; ++i) {
        values[(threadIdx.x + blockIdx.x) % 256] = i;
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
// A loop without an event, of which the text does not tell that it ends.
extern "C" __global__ void counts(unsigned* out, int rounds) {
    unsigned i = 0;
    while (i < rounds) asm volatile("add.u32 %0, %0, 1;" : "+r"(i));
    out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
"""


class Background(VirtualBackend):
    """Launches begin when the host waits for them, and only the host ends them."""

    choice, simulates = "gpu", False
    allocates_zeros = False

    def __init__(self) -> None:
        super().__init__()
        self._launch: Callable[[], Any] | None = None
        self.launches = 0

    def launch(self, *args: Any, **options: Any) -> None:  # type: ignore[override]
        """Keep the launch for later."""
        self.launches += 1
        self._launch = lambda: super(Background, self).launch(*args, **(options | {"timeout": None}))

    def poke(self, address: int, data: bytes) -> None:
        """The host tells threads to leave: they have not begun."""
        super().poke(address, data)
        self._told = True

    def synchronize(self, timeout: float | None = None) -> bool:
        """A launch that would hang is not over in time, unless its threads were told to leave."""
        if self._launch is None:
            return True
        if self.hangs and not self._told:
            return False
        begun, self._launch, self._told = self._launch, None, False
        begun()
        return True

    hangs = False
    _told = False


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Background:
    """The device. The machine's clock counts steps of all warps, so each barrier takes long, and any slice may never come."""
    monkeypatch.setattr(leaving, "LONG", 0xFFFFFFFF)
    monkeypatch.setattr(leaving, "SLICE", 0)
    return Background()


def _report(backend: Background, entry: str, number: int, grid: int = 2, block: int = 96, *, owned: bool = True, **options: Any) -> Any:
    session = Session(on=Device(backend), engine="record", **options)
    kernel = consan.Kernel(SOURCE, entry)
    prepared = session.prepare(kernel.module, name="k.cu")
    out = backend.alloc(4 * grid * block)
    zeros = bytes(4 * grid * block)
    backend.write(out, zeros)
    args = [out.to_bytes(8, "little"), number.to_bytes(4, "little")]
    restore = (lambda: backend.write(out, zeros)) if owned else None
    session.launch(prepared, entry, (grid, 1, 1), (block, 1, 1), args, restore=restore)
    report = session.report()
    return report, np.frombuffer(backend.read(out, 4 * grid * block), "<u4")


def test_a_launch_that_ends(backend: Background) -> None:
    report, out = _report(backend, "waits", 0)
    assert (report.verdict, report.findings, report.notes, backend.launches) == ("clean", (), (), 1)
    assert (out == 1).all()
    assert [each.engine for each in report.kernels if each.launches] == ["record"]


def test_a_deadlock_is_proven_by_the_record(backend: Background) -> None:
    backend.hangs = True
    report, _ = _report(backend, "waits", 1)
    assert (report.verdict, report.incomplete, backend.launches) == ("violations", (), 1)
    (finding,) = report.findings
    assert (finding.kind, finding.ctas) == ("deadlock", 2)
    assert {(waiter["why"], waiter["threads"]) for waiter in finding.waiters} == {("mbarrier", 64), ("barrier", 32)}
    assert finding.barrier.items() >= {"phase": 0, "pending": 1, "expected": 33}.items()


@pytest.mark.parametrize("owned", [True, False])
def test_without_a_proof(owned: bool, backend: Background) -> None:
    """The launch is repeated with hooks, or the report says where its threads were."""
    backend.hangs = True
    report, out = _report(backend, "counts", 300, owned=owned)
    if owned:
        assert (report.verdict, backend.launches, [each.engine for each in report.kernels]) == ("clean", 2, ["inline"] * 3)
        assert "its record proves no deadlock" in report.notes[0]
        assert (out == 1).all()
        return
    assert (report.verdict, report.findings, backend.launches) == ("incomplete", (), 1)
    (reason,) = report.incomplete
    assert "stopped after 30 s (--timeout SECONDS); --engine inline checks it" in reason
    assert "where its threads were: 6 warps of 2 CTAs" in reason


def test_a_launch_that_ends_while_it_is_stopped(backend: Background) -> None:
    backend.hangs = True
    report, out = _report(backend, "waits", 0)
    assert (report.verdict, report.notes, backend.launches) == ("clean", (), 1)
    assert (out == 1).all()


@pytest.mark.parametrize("owned", [True, False])
def test_replays_that_take_too_long(owned: bool, backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "LONGEST_CHECK", 0.0)
    report, _ = _report(backend, "differ", 2, 3, 64, owned=owned)
    assert report.verdict == ("clean" if owned else "incomplete")
    told = report.notes if owned else report.incomplete
    assert "that would take more than 0 s" in told[0]


def test_a_full_log_is_longer_the_second_time(backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "MOST_LINES", 64)
    monkeypatch.setattr(launch, "LONG_BYTES", 1)
    report, out = _report(backend, "differ", 60, 2, 64)
    assert (report.verdict, backend.launches) == ("clean", 2)
    assert [each.engine for each in report.kernels if each.launches] == ["record"]
    assert (out == 1).all()
    report, _ = _report(Background(), "differ", 3000, 1, 64)
    assert [each.engine for each in report.kernels if each.launches] == ["inline"]
    assert "ran out of room" in report.notes[0]


def test_a_fault_is_looked_at_again_by_a_new_process(
    backend: Background, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(timeout: float | None = None) -> bool:
        raise DeviceLost("made up", code=700, name="CUDA_ERROR_ILLEGAL_ADDRESS")

    second, _ = _report(Background(), "differ", 2, 1, 64)
    commands: list[list[str]] = []

    def run(command: list[str], **options: Any) -> None:
        commands.append(command)
        Path(command[-1]).write_text(dumps(second))

    monkeypatch.setattr(backend, "synchronize", lost)
    monkeypatch.setattr(again.subprocess, "run", run)
    monkeypatch.setattr(check, "open_session", lambda args, **options: Session(on=Device(backend), engine="record", **options))
    file = tmp_path / "k.cu"
    file.write_text(SOURCE)
    given = ["check", str(file), "--entry", "differ", "--grid", "1", "--block", "64", "--arg", "u32[64]=zeros", "--arg", "i32=2"]
    assert main([*given, "--notes"]) == 0
    assert commands[0][1:-1] == ["-m", "consan", *given, "--notes", "--engine", "inline", "--format", "json", "-o"]
    told = " ".join(capsys.readouterr().out.split())
    assert "checked again with called hooks (--engine inline) in a new process" in told
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in told


def test_a_kernel_that_no_loop_can_hold_up_has_no_looks() -> None:
    plain = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
    assert "%clock" not in record(plain, leaves=True).ptx
