"""Programs of CuPy's stand-in with several streams: each edge between two streams, and what is left of a program without it.

Mostly a kernel writes `y` in stream `a`, and another one reads it in stream `b`. The function's name says what stands between them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import consan

SOURCE = """
extern "C" __global__ void produce(const float *x, float *y) { int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = 2.0f * x[i]; }
extern "C" __global__ void consume(const float *y, float *z) { int i = blockIdx.x * blockDim.x + threadIdx.x; z[i] = y[i] + 1.0f; }
__constant__ float weights[2][64];
__device__ float table[64];
extern "C" __global__ void weigh(const float *x, float *y, int half) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * weights[half][threadIdx.x];
}
extern "C" __global__ void look_up(const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] + table[threadIdx.x];
}
"""
HALF = 256  # bytes of the weights that one launch reads
COUNT = 128


class Program:
    """The arrays, streams and kernels of a program."""

    def __init__(self, blocking: bool = False) -> None:
        self.cp: Any = importlib.import_module("cupy")
        self.module = self.cp.RawModule(code=SOURCE)
        self.kernels = {name: self.module.get_function(name) for name in ("produce", "consume", "weigh", "look_up")}
        self.a, self.b = (self.cp.cuda.Stream(non_blocking=not blocking) for _ in range(2))
        self.x, self.y, self.z = self.cp.ones(COUNT, "f4"), self.cp.zeros(COUNT, "f4"), self.cp.zeros(COUNT, "f4")
        self.cp.cuda.Device().synchronize()
        self.null = self.cp.cuda.Stream.null

    def run(self, name: str, source: Any, target: Any, stream: Any = None) -> None:
        self.kernels[name]((2,), (COUNT // 2,), (source, target), stream=stream)

    def produce(self, stream: Any) -> None:
        self.run("produce", self.x, self.y, stream)

    def consume(self, stream: Any) -> None:
        self.run("consume", self.y, self.z, stream)

    def weigh(self, stream: Any) -> None:
        """Reads the first half of a constant variable."""
        self.kernels["weigh"]((2,), (COUNT // 2,), (self.x, self.y, 0), stream=stream)

    def copy_to(self, name: str, stream: Any, offset: int = 0) -> None:
        """The host writes `HALF` bytes of a variable of the module."""
        values = np.ones(HALF // 4, "f4")
        (self.module.get_global(name) + offset).copy_from_host_async(values.ctypes.data, HALF, stream)


def no_edge(p: Program) -> None:
    p.produce(p.a)
    p.consume(p.b)


def event(p: Program) -> None:
    p.produce(p.a)
    p.b.wait_event(p.a.record())
    p.consume(p.b)


def event_too_early(p: Program) -> None:
    recorded = p.a.record()
    p.produce(p.a)
    p.b.wait_event(recorded)
    p.consume(p.b)


def event_recorded_again(p: Program) -> None:
    recorded = p.a.record()
    p.produce(p.a)
    recorded.record(p.a)
    p.b.wait_event(recorded)
    p.consume(p.b)


def event_never_recorded(p: Program) -> None:
    p.produce(p.a)
    p.b.wait_event(p.cp.cuda.Event())
    p.consume(p.b)


def event_in_the_current_stream(p: Program) -> None:
    recorded = p.cp.cuda.Event()
    with p.a:
        p.produce(None)
        recorded.record()
    with p.b:
        p.cp.cuda.get_current_stream().wait_event(recorded)
        p.consume(None)


def current_stream_of_a_block(p: Program) -> None:
    with p.a:
        p.produce(None)
    p.consume(p.a)


def current_stream_left(p: Program) -> None:
    with p.a:
        pass
    p.produce(None)  # in the default stream
    p.consume(p.a)


def current_stream_used(p: Program) -> None:
    p.a.use()
    p.produce(None)
    p.null.use()
    p.consume(p.a)


def host_waits_for_the_stream(p: Program) -> None:
    p.produce(p.a)
    p.a.synchronize()
    p.consume(p.b)


def host_waits_for_the_other_stream(p: Program) -> None:
    p.produce(p.a)
    p.b.synchronize()
    p.consume(p.b)


def host_waits_for_the_event(p: Program) -> None:
    p.produce(p.a)
    p.a.record().synchronize()
    p.consume(p.b)


def host_waits_for_the_device(p: Program) -> None:
    p.produce(p.a)
    p.cp.cuda.Device().synchronize()
    p.consume(p.b)


def host_polls_the_event(p: Program) -> None:
    p.produce(p.a)
    recorded = p.a.record()
    while not recorded.done:
        pass
    p.consume(p.b)


def host_polls_the_stream(p: Program) -> None:
    p.produce(p.a)
    while not p.a.done:
        pass
    assert p.a.done
    p.consume(p.b)


def host_asks_once(p: Program) -> None:
    p.produce(p.a)
    if p.a.record().done:  # a GPU may still be at work: the answer is no
        p.b.synchronize()
    p.consume(p.b)


def through_a_third_stream(p: Program) -> None:
    third = p.cp.cuda.Stream(non_blocking=True)
    p.produce(p.a)
    third.wait_event(p.a.record())
    p.b.wait_event(third.record())
    p.consume(p.b)


def default_stream_first(p: Program) -> None:
    p.produce(p.null)
    p.consume(p.b)


def default_stream_last(p: Program) -> None:
    p.produce(p.a)
    p.consume(p.null)


def default_stream_between(p: Program) -> None:
    p.produce(p.a)
    p.cp.zeros(4)
    p.consume(p.b)


def copy_to_the_host(p: Program) -> None:
    with p.a:
        p.produce(None)
        p.y.get()
    p.consume(p.b)


def copy_to_the_host_in_another_stream(p: Program) -> None:
    p.produce(p.a)
    p.cp.asnumpy(p.y)


def copy_to_the_host_without_a_wait(p: Program) -> None:
    p.produce(p.a)
    p.y.get(stream=p.a, blocking=False)
    p.consume(p.b)


def operation_in_the_stream(p: Program) -> None:
    with p.a:
        p.produce(None)
        assert float((p.y + 1).sum()) == 3 * COUNT


def operation_in_another_stream(p: Program) -> None:
    p.produce(p.a)
    p.y.fill(3)


def method_in_another_stream(p: Program) -> None:
    p.produce(p.a)
    p.y.sum()


def generated_kernel(p: Program, other: bool = False) -> None:
    triple = p.cp.ElementwiseKernel("float32 x", "float32 y", "y = 3 * x", "triple")
    total = p.cp.ReductionKernel("float32 x", "float32 y", "x", "a + b", "y = a", "0", "total")
    out = p.cp.zeros(COUNT, "f4")
    p.cp.cuda.Device().synchronize()
    p.produce(p.a)
    triple(p.y, out, stream=p.a)
    total(out, stream=p.b if other else p.a)


def generated_kernel_in_another_stream(p: Program) -> None:
    generated_kernel(p, other=True)


def view_of_other_elements(p: Program) -> None:
    both = p.cp.zeros(2 * COUNT, "f4")
    p.cp.cuda.Device().synchronize()
    p.run("produce", p.x, both[:COUNT], p.a)
    p.run("consume", p.x, both[COUNT:], p.b)


def column_beside_a_column(p: Program) -> None:
    both = p.cp.zeros((COUNT, 2), "f4")
    p.produce(p.null)
    p.cp.cuda.Device().synchronize()
    with p.a:
        both[:, 0] = 1
    with p.b:
        both[:, 1] = 2


def column_under_a_row(p: Program) -> None:
    both = p.cp.zeros((COUNT, 2), "f4")
    p.cp.cuda.Device().synchronize()
    with p.a:
        both[:, 0] = 1
    with p.b:
        both[5] = 2


def new_array_of_another_stream(p: Program) -> None:
    new = p.cp.ones(COUNT, "f4")  # in the default stream
    p.run("produce", new, p.y, p.a)


def freed_memory(p: Program) -> None:
    with p.a:
        first = p.cp.empty(COUNT, "f4")
        address = first.data.ptr
        p.run("produce", p.x, first)
    del first
    with p.b:
        second = p.cp.empty(COUNT, "f4")
        assert second.data.ptr == address
        p.run("consume", p.x, second)


def memory_given_again(p: Program, wait: Callable[[Program], None] = lambda p: None) -> None:
    with p.a:
        first = p.cp.empty(COUNT, "f4")
    p.run("consume", p.x, first, p.b)
    del first  # while b may still write to it
    wait(p)
    with p.a:
        second = p.cp.empty(COUNT, "f4")
    p.run("consume", p.z, second, p.a)


def memory_given_after_a_wait(p: Program) -> None:
    memory_given_again(p, lambda p: p.a.wait_event(p.b.record()))


def memory_given_after_the_host_has_waited(p: Program) -> None:
    memory_given_again(p, lambda p: p.b.synchronize())


def memory_of_no_pool(p: Program) -> None:
    p.cp.cuda.set_allocator(None)
    memory_given_again(p)


def memory_that_the_pool_gave_back(p: Program) -> None:
    memory_given_again(p, lambda p: p.cp.get_default_memory_pool().free_all_blocks())


def memory_of_another_size(p: Program) -> None:
    with p.a:
        first = p.cp.empty(COUNT, "f4")
    p.run("consume", p.x, first, p.b)
    del first
    with p.a:
        second = p.cp.empty(4 * COUNT, "f4")
    p.run("consume", p.x, second, p.a)


def constants_written_in_another_stream(p: Program) -> None:
    p.weigh(p.a)
    p.copy_to("weights", p.b)


def constants_read_in_another_stream(p: Program) -> None:
    p.copy_to("weights", p.b)
    p.weigh(p.a)


def constants_written_behind_an_event(p: Program) -> None:
    p.weigh(p.a)
    p.b.wait_event(p.a.record())
    p.copy_to("weights", p.b)


def constants_written_before_a_wait(p: Program) -> None:
    p.copy_to("weights", p.null)
    p.null.synchronize()
    p.weigh(p.a)
    p.copy_to("weights", p.a)
    p.weigh(p.a)


def constants_of_the_other_half(p: Program) -> None:
    p.weigh(p.a)
    p.copy_to("weights", p.b, HALF)


def variable_written_in_another_stream(p: Program) -> None:
    p.run("look_up", p.x, p.y, p.a)
    p.copy_to("table", p.b)


def one_value(p: Program) -> None:
    p.produce(p.a)
    p.produce(p.b)


CLEAN: list[Callable[[Program], None]] = [
    event, event_recorded_again, event_in_the_current_stream, current_stream_of_a_block, current_stream_used,
    host_waits_for_the_stream, host_waits_for_the_event, host_waits_for_the_device, host_polls_the_event, through_a_third_stream,
    host_polls_the_stream,
    copy_to_the_host, operation_in_the_stream, view_of_other_elements, column_beside_a_column, freed_memory,
    memory_given_after_a_wait, memory_given_after_the_host_has_waited, memory_of_another_size, memory_of_no_pool,
    memory_that_the_pool_gave_back, generated_kernel, constants_written_behind_an_event, constants_written_before_a_wait,
    constants_of_the_other_half,
]  # fmt: skip
RACY: list[Callable[[Program], None]] = [
    no_edge, event_too_early, event_never_recorded, current_stream_left, host_waits_for_the_other_stream, default_stream_first,
    host_asks_once,
    default_stream_last, default_stream_between, copy_to_the_host_in_another_stream, copy_to_the_host_without_a_wait,
    operation_in_another_stream, method_in_another_stream, generated_kernel_in_another_stream, column_under_a_row,
    new_array_of_another_stream, constants_written_in_another_stream, constants_read_in_another_stream,
    variable_written_in_another_stream,
]  # fmt: skip
CLEAN_OF_BLOCKING: list[Callable[[Program], None]] = [
    default_stream_first, default_stream_last, default_stream_between, current_stream_left, copy_to_the_host_in_another_stream,
    operation_in_another_stream, new_array_of_another_stream,
]  # fmt: skip
RACY_OF_BLOCKING: list[Callable[[Program], None]] = [no_edge, event_too_early, host_waits_for_the_other_stream, column_under_a_row]


def ran(program: Callable[[Program], None], *, blocking: bool = False) -> Any:
    """The report of a program."""
    with consan.check(device="cpu") as live:
        made = Program(blocking)
        program(made)
    return live.report


def findings(report: Any) -> list[tuple[str, str, str]]:
    return [(each.kind, each.situation, each.hazard) for each in report.findings]
