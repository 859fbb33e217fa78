"""A framework that launches kernels of a module, which a session records. The virtual machine stands in for a GPU with streams."""

from __future__ import annotations

import itertools
from typing import Any

from leaving_support import SHADOW
from streams_support import Streams

from consan.backends.callbacks import DriverCall
from consan.backends.contexts import ProcessMemory
from consan.reports.model import Report
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.device import Device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

BLOCK, WORDS = (64, 1, 1), 512
KERNELS = """
// Each thread has its own element, unless `shift` moves those of CTA 1 on those of CTA 0.
extern "C" __global__ void fills(unsigned* out, unsigned* from, int shift) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x - (blockIdx.x == 1 ? shift : 0);
    out[at] = from[at] + blockIdx.x;
}
// Where a thread writes follows from memory: `from` has zeros.
extern "C" __global__ void scatters(unsigned* out, unsigned* from, int apart) {
    out[from[threadIdx.x] + (blockIdx.x * blockDim.x + threadIdx.x) * apart] = threadIdx.x;
}
// The same, with a barrier: it records something.
extern "C" __global__ void exchanges(unsigned* out, unsigned* from, int apart) {
    __shared__ unsigned values[64];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[from[threadIdx.x] + (blockIdx.x * blockDim.x + threadIdx.x) * apart] = values[63 - threadIdx.x];
}
"""


class Framework:
    """A framework that launches kernels, and does not wait. `knows`: it tells the parameters."""

    def __init__(self, source: str = KERNELS, *, knows: bool = True, calls: Any = None, **options: Any) -> None:
        self.backend, self.knows, self.capturing = Streams(), knows, set[int]()
        self.backend.calls, self.calls = calls, calls
        self.backend.capturing = lambda stream: stream in self.capturing  # type: ignore[method-assign]
        self.session = Session(SessionOptions.of({"trace_memory": 1 << 24, **options}), on=Device(self.backend, arena_bytes=SHADOW))
        assert self.session.followed is not None  # from here on, as adapters do
        self.prepared = self.session.instrument_for_framework(compile_ptx(source, arch="sm_90a").ptx)
        self.module = self.backend.load(self.prepared.instrumented.ptx)
        self.session.attach(self.prepared, lambda name, data: self.backend.write(self.backend.symbol(self.module, name)[0], data))
        self.out, self.source = self.backend.alloc(4 * WORDS), self.backend.alloc(4 * WORDS)
        self.backend.write(self.source, bytes(4 * WORDS))
        self.exchanged: list[bool] = []
        self.asked = 0  # how often for parameters

    def launch(self, entry: str = "fills", number: int = 0, ctas: int = 2, *, out: int = 0, stream: int = 0, chained: bool = False) -> None:
        """`chained`: a programmatic dependent launch."""
        values = [(self.out + out).to_bytes(8, "little"), self.source.to_bytes(8, "little"), number.to_bytes(4, "little")]

        def args() -> tuple[bytes, ...] | None:
            self.asked += 1
            return tuple(values) if self.knows else None

        launch = FrameworkLaunch(entry, (ctas, 1, 1), BLOCK, (1, 1, 1), stream, self.module, args=args)
        with self.session.framework_launch(self.prepared, launch) as module:
            self.exchanged.append(module is not None)
            if chained:
                self.calls.call("cuLaunchKernelEx", stream, 1, 0, 0, chained=True)
            self.backend.launch(module or self.module, entry, launch.grid, BLOCK, values, stream=stream)

    def settle(self) -> None:
        """Wait until what was launched is checked."""
        self.session.frameworks.background.settle()

    def report(self) -> Report:
        return self.session.report()


def gap(report: Report) -> str:
    """What the report says of global memory."""
    return next((area.partition(": ")[2] for area in report.not_checked if area.startswith("global-memory")), "")


class FakeCalls:
    """The driver's calls of a program that is made up (`CallSource`). `why`: why they cannot be followed."""

    def __init__(self, why: str = "") -> None:
        self.why, self.listener, self.matters = why, None, lambda name: False
        self.non_blocking: set[int] = set()
        self.pageable: set[int] = set()
        self.passed: tuple[int, ...] | None = None  # the stream whose launches are passed over, and the context
        self._handles = itertools.count(0x1000, 0x10)
        self.counts: dict[int, int] = {}
        self.allocations: dict[int, int] = {}  # bytes, by their first address
        self.memory = ProcessMemory(self.status)

    def follow(self, listener: Any, matters: Any, layouts: Any) -> str:
        self.listener, self.matters = listener, matters
        return self.why

    notes = serves_alone = False
    reads_attributes = True

    def count_kernel(self, handle: int) -> bool:
        """Every launch is known."""
        return False

    def taken_count(self, handle: int) -> int:
        return self.counts.pop(handle, 0)

    def note(self, context: int | None, streams: Any = None) -> None:
        """The listener gets each call at once."""

    def ends_order(self) -> None:
        """The listener gets each call."""

    def name_kernel(self, handle: int) -> None:
        """No launch is noted."""

    def read_noted(self) -> None:
        """Nothing is noted."""

    def is_captured(self, stream: int) -> bool:
        return False

    def blocks(self, stream: int) -> bool:
        return stream not in self.non_blocking

    def is_registered(self, address: int) -> bool:
        return address not in self.pageable

    def status(self, function: str, to: Any, number: int, address: Any) -> int:
        """What the driver says of an allocation: its first address (11), or its bytes (12)."""
        assert function == "cuPointerGetAttribute"
        begin = next((begin for begin, nbytes in self.allocations.items() if begin <= address.value < begin + nbytes), None)
        if begin is not None:
            to._obj.value = begin if number == 11 else self.allocations[begin]
        return int(begin is None)

    def kernel(self, function: int) -> str:
        return "_Z4fastPf"

    def pass_over(self, stream: int, context: int, graph: int = 0) -> None:
        self.passed = (stream, context, graph) if graph else (stream, context)

    def tell_all(self) -> None:
        self.passed = None

    def call(
        self, name: str, *values: int, per_thread: bool = False, context: int = 1, chained: bool = False, records: bool = False
    ) -> None:
        """The program makes a call of the driver."""
        self.memory.called(name, values)
        if self.listener is not None and self.matters(name):
            self.tell_all()
            self.listener.called(DriverCall(name, values, per_thread, context, programmatic=chained, records=records))

    def given(self, name: str, *values: int, first: bool = True, context: int = 1) -> int:
        """The same for a call that gives a handle, by its first parameter or its last."""
        handle = next(self._handles)
        self.call(name, *((handle, *values) if first else (*values, handle)), context=context)
        return handle

    def stream(self, flags: int = 1) -> int:
        return self.given("cuStreamCreate", flags)

    def event(self, stream: int) -> int:
        event = next(self._handles)
        self.call("cuEventRecord", event, stream)
        return event

    def edge(self, first: int, second: int) -> None:
        """Let a stream wait for an event of another one."""
        self.call("cuStreamWaitEvent", second, self.event(first), 0)
