"""Launches from several host threads, on several streams, and in CUDA graphs: each launch has its own findings and counts."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

import numpy as np
import pytest
from device_support import Bench, encoded, found, launches

from consan.backends import driver as api
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

SOURCE = """
extern "C" __global__ void exchange(int racy, int work, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    unsigned sum = 0;
#pragma unroll 1
    for (int k = 0; k < work; k++) {
        tile[t] = t + k;                                /*@write*/
        if (!racy) __syncthreads();
        sum += tile[63 - t];                            /*@read*/
        __syncthreads();
    }
    out[blockIdx.x * 64 + t] = sum;
}
extern "C" __global__ void neighbour(unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    tile[t] = t;                                        /*@put*/
    __syncthreads();
    if (t == 0) tile[1] = 5;                            /*@poke*/
    out[t] = tile[t];                                   /*@peek*/
}
"""
RACE = {("data-race", "read", "write")}


def expected(work: int) -> Any:
    return sum((63 - np.arange(64)) + k for k in range(work))


def _in_threads(count: int, work: Any) -> None:
    errors: list[BaseException] = []

    def guarded(index: int) -> None:
        try:
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_launches_from_eight_threads(device: str) -> None:
    """One session, one module: every launch computes, is counted once, and only the racy ones are reported."""
    bench = Bench(device, SOURCE)
    buffers = [bench.zeros(64 * 4) for _ in range(8)]

    def work(index: int) -> None:
        for _ in range(4):
            bench.launch("exchange", 4, 64, 0, 9, buffers[index])
        if index == 3:
            bench.launch("neighbour", 2, 64, buffers[index])
            bench.launch("exchange", 4, 64, 0, 9, buffers[index])

    _in_threads(8, work)
    report = bench.report()
    assert found(report, SOURCE) == {("data-race", "peek", "poke")}
    assert report.findings[0].ctas == 2
    assert launches(report) == {"exchange": 33, "neighbour": 1}
    for address in buffers:
        np.testing.assert_array_equal(bench.array(address, 256).reshape(4, 64), np.tile(expected(9), (4, 1)))


def test_modules_prepared_from_eight_threads(device: str) -> None:
    """Preparing and launching at once: numbers of modules and counters are not handed out twice."""
    bench = Bench(device)
    from device_support import compiled

    texts = [compiled(SOURCE.replace("t + k", f"t + k * {i + 1}")) for i in range(8)]
    out = [bench.zeros(64) for _ in texts]

    def work(index: int) -> None:
        prepared = bench.session.prepare(texts[index % 4], name=f"k{index % 4}.cu")
        bench.launch("exchange", 1, 64, int(index == 5), 2, out[index], prepared=prepared)

    _in_threads(8, work)
    report = bench.report()
    assert sum(kernel.launches for kernel in report.kernels) == 8
    assert len({prepared.counter for prepared in bench.session.modules.used.values()}) == 4
    assert found(report, SOURCE) == RACE
    for index in (0, 1, 2, 3):
        assert bench.array(out[index], 64).tolist() == [2 * (63 - t) + index % 4 + 1 for t in range(64)]


def test_sessions_one_after_the_other_share_a_device(device: str) -> None:
    """The second session starts with nothing of the first one's."""
    from device_support import compiled

    for racy in (1, 0, 1):
        session = Session(SessionOptions(device=device))
        prepared = session.prepare(compiled(SOURCE))
        address = session.backend.alloc(1024)
        session.launch(prepared, "exchange", (2, 1, 1), (64, 1, 1), [encoded(racy, 4), encoded(3, 4), encoded(address, 8)])
        report = session.report()
        assert found(report, SOURCE) == (RACE if racy else set())
        assert launches(report) == {"exchange": 1, "neighbour": 0}
        session.backend.free(address)


# -- streams and graphs: the GPU only -----------------------------------------------------------------------------------------


class Streams:
    """Non-blocking streams and graphs of the current context, through the driver."""

    def __init__(self, bench: Bench) -> None:
        self.driver = api.driver()
        self.bench = bench

    def make(self) -> int:
        stream = ctypes.c_void_p()
        with self.bench.backend.current():
            self.driver.call("cuStreamCreate", ctypes.byref(stream), 1)
        assert stream.value
        return stream.value

    def wait(self, stream: int) -> None:
        with self.bench.backend.current():
            self.driver.call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def capture(self, stream: int, work: Any) -> ctypes.c_void_p:
        """An executable graph of what `work` launches."""
        graph, runnable = ctypes.c_void_p(), ctypes.c_void_p()
        with self.bench.backend.current():
            self.driver.call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), 1)
            try:
                work()
            finally:
                self.driver.call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
            self.driver.call("cuGraphInstantiateWithFlags", ctypes.byref(runnable), graph, ctypes.c_ulonglong(0))
        return runnable

    def replay(self, graph: ctypes.c_void_p, stream: int) -> None:
        with self.bench.backend.current():
            self.driver.call("cuGraphLaunch", graph, ctypes.c_void_p(stream))


@pytest.mark.gpu
def test_one_kernel_on_several_streams(gpu: None) -> None:
    """A racy and seven clean launches of one kernel run side by side: the findings are the racy CTAs' only."""
    bench = Bench("gpu", SOURCE)
    streams = Streams(bench)
    handles, buffers = [streams.make() for _ in range(8)], [bench.zeros(64 * 8) for _ in range(8)]
    for _ in range(20):
        for index, (stream, out) in enumerate(zip(handles, buffers, strict=True)):
            bench.launch("exchange", 8, 64, int(index == 2), 200, out, stream=stream)
    report = bench.report()
    assert found(report, SOURCE) == RACE
    (finding,) = report.findings
    assert finding.ctas == 20 * 8
    assert launches(report)["exchange"] == 160
    for index, out in enumerate(buffers):
        if index != 2:
            np.testing.assert_array_equal(bench.array(out, 512).reshape(8, 64), np.tile(expected(200), (8, 1)))


@pytest.mark.gpu
def test_clean_kernels_on_several_streams(gpu: None) -> None:
    bench = Bench("gpu", SOURCE)
    streams = Streams(bench)
    handles, out = [streams.make() for _ in range(16)], bench.zeros(64 * 64)
    for round_ in range(400):
        bench.launch("exchange", 1 + round_ % 64, 64, 0, 1 + round_ % 50, out, stream=handles[round_ % 16])
    report = bench.report()
    assert (report.verdict, launches(report)["exchange"]) == ("clean", 400)


@pytest.mark.gpu
@pytest.mark.parametrize("racy", [0, 1])
def test_graph_replays(gpu: None, racy: int) -> None:
    """Each replay counts as a launch and is checked as one; nothing is allocated while capturing."""
    bench = Bench("gpu", SOURCE)
    streams, out = Streams(bench), bench.zeros(64 * 8)
    stream = streams.make()

    def work() -> None:
        bench.launch("exchange", 8, 64, 0, 20, out, stream=stream)
        bench.launch("exchange", 8, 64, racy, 20, out, stream=stream)

    graph = streams.capture(stream, work)
    for _ in range(100):
        streams.replay(graph, stream)
    streams.wait(stream)
    report = bench.report()
    assert launches(report)["exchange"] == 200
    assert found(report, SOURCE) == (RACE if racy else set())
    assert sum(finding.ctas for finding in report.findings) == racy * 800
    if not racy:
        np.testing.assert_array_equal(bench.array(out, 512).reshape(8, 64), np.tile(expected(20), (8, 1)))


@pytest.mark.gpu
def test_replays_of_one_graph_on_two_streams(gpu: None) -> None:
    bench = Bench("gpu", SOURCE)
    streams, out = Streams(bench), bench.zeros(64 * 8)
    one, two = streams.make(), streams.make()
    graphs = [streams.capture(one, functools.partial(bench.launch, "exchange", 8, 64, r, 50, out, stream=one)) for r in (0, 1)]
    for _ in range(50):
        streams.replay(graphs[0], one)
        streams.replay(graphs[1], two)
    streams.wait(one)
    streams.wait(two)
    report = bench.report()
    assert launches(report)["exchange"] == 100
    assert found(report, SOURCE) == RACE
    assert sum(finding.ctas for finding in report.findings) == 400
