"""The positions of the threads of a launch that was stopped, as the device itself notes them.

On the virtual machine the launch goes on in a thread of its own, as on a GPU: it returns at once, and only the abort word ends it.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from device_support import Bench, markers

from consan.instrument.abi import sizes
from consan.session.executing import watch

SOURCE = """
#include <cstdint>
__device__ unsigned address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
extern "C" __global__ void spin(volatile unsigned* flag, unsigned* out) {
    __shared__ unsigned tile[128];
    tile[threadIdx.x] = threadIdx.x;
    unsigned looks = 0;
    while (*flag == 0) ++looks;                             /*@spin*/
    out[threadIdx.x] = looks + tile[threadIdx.x];
}
extern "C" __global__ void plain(volatile unsigned* flag, unsigned* out) {
    unsigned looks = 0;
    while (*flag == 0) ++looks;                             /*@plain*/
    out[threadIdx.x] = looks;
}
extern "C" __global__ void some(volatile unsigned* flag, unsigned* out) {
    __shared__ unsigned tile[128];
    tile[threadIdx.x] = threadIdx.x;
    unsigned looks = 0;
    if (threadIdx.x < 32) while (*flag == 0) ++looks;       /*@some*/
    __syncthreads();
    out[threadIdx.x] = looks + tile[127 - threadIdx.x];
}
__device__ __noinline__ unsigned wait_for(volatile unsigned* flag) {
    unsigned looks = 0;
    while (*flag == 0) ++looks;                             /*@called*/
    return looks;
}
extern "C" __global__ void calls(volatile unsigned* flag, unsigned* out) {
    __shared__ unsigned tile[128];
    tile[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = wait_for(flag) + tile[threadIdx.x];
}
"""
BARRIERS = """
#include <cstdint>
__device__ unsigned address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
extern "C" __global__ void waits(volatile unsigned* flag, unsigned* out) {
    __shared__ alignas(8) uint64_t full;
    __shared__ unsigned tile[128];
    const unsigned t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(address(&full)) : "memory");
    tile[t] = t;
    __syncthreads();
    unsigned looks = 0, done = 0;
    if (t < 32) while (*flag == 0) ++looks;                 /*@looks*/
    if (t >= 96)
        while (!done)
            asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                         : "=r"(done) : "r"(address(&full)) : "memory");   /*@try*/
    __syncthreads();                                        /*@barrier*/
    out[t] = looks + tile[127 - t];
}
"""
STOPPED = "did not run to its end: stopped after 2 s (--timeout SECONDS); where its threads were: "


def background(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The virtual machine with launches that run on while the host waits for them, as on a GPU."""
    if not bench.on_cpu:
        return bench
    launch, running = bench.backend.launch, list[threading.Thread]()

    def start(*args: Any, **options: Any) -> None:
        running.append(threading.Thread(target=lambda: launch(*args, **options | {"timeout": None}), daemon=True))
        running[-1].start()

    def synchronize(timeout: float | None = None) -> bool:
        for thread in running:
            thread.join(timeout)
        return not any(thread.is_alive() for thread in running)

    monkeypatch.setattr(watch, "LEAVING", 60.0)  # other processes may keep the virtual machine from running
    monkeypatch.setattr(bench.backend, "launch", start)
    monkeypatch.setattr(bench.backend, "synchronize", synchronize)
    return bench


def stopped(device: str, monkeypatch: pytest.MonkeyPatch, entry: str, grid: int, source: str = SOURCE) -> tuple[Bench, str]:
    """A kernel of 128 threads a CTA that is over time, and what is said of its positions."""
    bench = background(Bench(device, source, timeout=2.0), monkeypatch)
    bench.launch(entry, grid, 128, bench.zeros(2), bench.zeros(128))
    report = bench.report()
    (reason,) = report.incomplete
    assert report.findings == ()
    assert not bench.session.device_lost
    kernel, _, where = reason.partition(" ")
    assert kernel == entry
    assert where.startswith(STOPPED)
    return bench, where.removeprefix(STOPPED)


def line(name: str, source: str = SOURCE) -> int:
    return next(number for number, marker in markers(source).items() if marker == name)


@pytest.mark.parametrize(
    ("entry", "marker"), [("spin", "spin"), pytest.param("plain", "plain", marks=pytest.mark.slow), ("calls", "called")]
)
def test_each_warp_says_where_it_stood(device: str, entry: str, marker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, where = stopped(device, monkeypatch, entry, 2)
    assert where.startswith(f"8 warps of 2 CTAs (the first is (0,0,0)), 256 lanes, at kernel.cu:{line(marker)}:")
    assert where.endswith(", `ld.volatile.global.u32`")


def test_threads_that_were_not_told_are_counted(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those at a barrier go on when the others leave: without mbarriers nobody asks them where they were."""
    _, where = stopped(device, monkeypatch, "some", 1)
    assert where.startswith(f"warp 0 of CTA (0,0,0), 32 lanes, at kernel.cu:{line('some')}:")
    assert where.endswith("; and 96 more threads at a barrier, at the end or not started")


def test_waits_at_barriers_and_mbarriers(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, where = stopped(device, monkeypatch, "waits", 1, BARRIERS)
    told = sorted(where.split("; "))
    assert len(told) == 3, where
    at = {name: line(name, BARRIERS) for name in ("looks", "try", "barrier")}
    assert told[0].startswith(f"warp 0 of CTA (0,0,0), 32 lanes, at kernel.cu:{at['looks']}:")
    # The statement begins on the line above its mark; some versions of NVRTC name that line, others the next.
    assert told[1].startswith(tuple(f"warp 3 of CTA (0,0,0), 32 lanes, at kernel.cu:{at['try'] - up}:" for up in (0, 1)))
    assert told[1].endswith("`mbarrier.test_wait.parity.shared::cta.b64`")
    assert told[2].startswith(f"warps 1 and 2 of CTA (0,0,0), 64 lanes, waiting, at kernel.cu:{at['barrier']}:")


def test_many_warps_are_bounded_and_the_rest_is_counted(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ctas = sizes.STANDS // 4 + 4
    _, where = stopped(device, monkeypatch, "spin", ctas)
    assert where.startswith(f"{sizes.STANDS} warps of ")
    assert where.endswith("; and 512 more threads in loops or at waits")


def test_a_later_launch_says_its_own(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _ = stopped(device, monkeypatch, "spin", sizes.STANDS)
    bench.launch("plain", 1, 64, bench.zeros(2), bench.zeros(128))
    (reason,) = (reason for reason in bench.report().incomplete if reason.startswith("plain"))
    assert f"warps 0 and 1 of CTA (0,0,0), 64 lanes, at kernel.cu:{line('plain')}:" in reason
    assert "more thread" not in reason
