"""A device that runs launches in the background and does not end them by itself, as a GPU. The virtual machine stands in for it: it begins
a launch only once the host waits without a limit, or has signalled the threads to leave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import consan
from consan.backends.virtual import VirtualBackend
from consan.instrument.record import leaving
from consan.session.modules.device import Device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

SHADOW = 64 << 20  # bytes: the device clears all of it

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
// A loop without an event; the text does not show that it ends.
extern "C" __global__ void counts(unsigned* out, int rounds) {
    unsigned i = 0;
    while (i < rounds) asm volatile("add.u32 %0, %0, 1;" : "+r"(i));
    out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
// Nothing to record, and nothing to stop.
extern "C" __global__ void adds(unsigned* out, int more) {
    if (more < 100) out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
// Warp 0 waits for an arrival that does not come, and warp 1 for warp 0.
extern "C" __global__ void counted(unsigned* out, int) {
    __shared__ u64 b;
    if (threadIdx.x == 0) init(&b, 1);
    __syncthreads();
    if (threadIdx.x < 32) wait(&b, 0);
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
// Warp 0 waits for an arrival that does not come, warp 1 for one of another barrier by the same instruction, and warp 2 counts.
extern "C" __global__ void mixed(unsigned* out, int rounds) {
    __shared__ u64 b[2];
    if (threadIdx.x < 2) init(&b[threadIdx.x], 1);
    __syncthreads();
    unsigned i = 0;
    if (threadIdx.x < 64) wait(&b[threadIdx.x / 32], 0);
    else while (i < rounds) asm volatile("add.u32 %0, %0, 1;" : "+r"(i));
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
        """A launch that would hang is not over in time, unless its threads were signalled to leave."""
        if self._launch is None:
            return True
        if self.hangs and not self._told:
            return False
        begun, self._launch, self._told = self._launch, None, False
        begun()
        return True

    hangs = False
    _told = False


def slow_clock(monkeypatch: pytest.MonkeyPatch) -> Background:
    """The device. The machine's clock counts steps of all warps, so each barrier takes long, and any slice may never come."""
    monkeypatch.setattr(leaving, "LONG", 0xFFFFFFFF)
    monkeypatch.setattr(leaving, "SLICE", 0)
    monkeypatch.setattr(leaving, "ITERATIONS", 0)
    return Background()


def launched(backend: Background, entry: str, number: int, grid: int = 2, block: int = 96, *, owned: bool = True, **options: Any) -> Any:
    """The report of a launch of a kernel of SOURCE, and what it has stored."""
    session = Session(SessionOptions.of({"engine": "record", **options}), on=Device(backend, arena_bytes=SHADOW))
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
