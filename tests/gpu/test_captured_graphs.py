"""CUDA graphs of CuPy and torch on a GPU: their kernels are recorded, each node with a log of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_cupy_adapter import run

pytestmark = pytest.mark.gpu

KERNEL = '''
SRC = r"""
__device__ int calls;
extern "C" __global__ void turn(const float *x, float *y) {
    __shared__ float tile[128];
    int at = 128 * blockIdx.x + threadIdx.x;
    tile[threadIdx.x] = x[at];
    BARRIER;
    y[at] = tile[127 - threadIdx.x];
}
extern "C" __global__ void twice(float *y) { y[128 * blockIdx.x + threadIdx.x] *= 2; }
extern "C" __global__ void all(float *y) { y[threadIdx.x] = blockIdx.x; }
"""
'''
FIXED, RACY = KERNEL.replace("BARRIER", "__syncthreads()"), KERNEL.replace("BARRIER", "")
CUPY = (
    "m = cp.RawModule(code=SRC); turn, twice = m.get_function('turn'), m.get_function('twice')\n"
    "x, y = cp.arange(512, dtype='f4'), cp.zeros(512, 'f4')\n"
    "stream = cp.cuda.Stream(non_blocking=True); cp.cuda.Device().synchronize()\n"
)
TURNED = "want = x.get().reshape(4, 128)[:, ::-1].reshape(-1)\n"
REPLAYS = "for _ in range(100): graph.launch(stream)\nstream.synchronize()\n"


def recorded(report: dict[str, Any], *names: str) -> list[int]:
    """The launches of these kernels that were recorded; -1: one was launched otherwise. CuPy and torch launch kernels of their own."""
    found = [[each for each in report["kernels"] if each["name"] == name and each["launches"]] for name in names]
    return [sum(each["launches"] for each in of) if {each["engine"] for each in of} == {"record"} else -1 for of in found]


@pytest.fixture(autouse=True)
def _gpu() -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not cupy.is_available():
        pytest.skip("no GPU")


@pytest.mark.parametrize(("source", "status"), [(FIXED, 0), (RACY, 66)], ids=["fixed", "racy"])
def test_a_captured_kernel_is_recorded(source: str, status: int, tmp_path: Path) -> None:
    script = (
        source
        + CUPY
        + TURNED
        + (
            "with stream:\n    stream.begin_capture(); turn((4,), (128,), (x, y)); twice((4,), (128,), (y,))\n"
            "    graph = stream.end_capture()\n" + REPLAYS
        )
    )
    if not status:
        script += "assert (y.get() == 2 * want).all()"
    found, report = run(tmp_path, script)
    assert found == status, report
    assert recorded(report, "turn", "twice") == [100, 100], report
    assert {each["kind"] for each in report["findings"]} == ({"data-race"} if status else set())


@pytest.mark.parametrize("mode", ["Global", "ThreadLocal", "Relaxed"])
def test_all_modes_of_capture(mode: str, tmp_path: Path) -> None:
    script = (
        FIXED
        + CUPY
        + TURNED
        + (
            f"with stream:\n    stream.begin_capture(cp.cuda.runtime.streamCaptureMode{mode}); turn((4,), (128,), (x, y))\n"
            "    graph = stream.end_capture()\n" + REPLAYS + "assert (y.get() == want).all()"
        )
    )
    status, report = run(tmp_path, script)
    assert (status, recorded(report, "turn")) == (0, [100]), report


def test_graphs_and_other_launches_at_the_same_time(tmp_path: Path) -> None:
    script = (
        FIXED
        + CUPY
        + TURNED
        + (
            "streams, graphs, out = [cp.cuda.Stream(non_blocking=True) for _ in range(3)], [], [cp.zeros(512, 'f4') for _ in range(4)]\n"
            "for s, o in zip(streams, out):\n"
            "    with s: s.begin_capture(); turn((4,), (128,), (x, o)); graphs.append(s.end_capture())\n"
            "cp.cuda.Device().synchronize()\n"
            "for _ in range(100):\n"
            "    for s, g in zip(streams, graphs): g.launch(s)\n"
            "    with stream: turn((4,), (128,), (x, out[3]))\n"
            "cp.cuda.Device().synchronize()\nfor o in out: assert (o.get() == want).all()"
        )
    )
    status, report = run(tmp_path, script)
    assert (status, recorded(report, "turn")) == (0, [400]), report


def test_a_race_in_global_memory_of_a_captured_kernel(tmp_path: Path) -> None:
    script = (
        FIXED
        + CUPY
        + (
            "k = m.get_function('all')\n"
            "with stream:\n    stream.begin_capture(); k((4,), (128,), (y,)); graph = stream.end_capture()\n" + REPLAYS
        )
    )
    status, report = run(tmp_path, script)
    assert status == 66
    assert {each["kind"] for each in report["findings"]} == {"global-race"}


def test_parallel_branches(tmp_path: Path) -> None:
    script = (
        FIXED
        + CUPY
        + TURNED
        + (
            "z, other, e, f = cp.zeros(512, 'f4'), cp.cuda.Stream(non_blocking=True), cp.cuda.Event(), cp.cuda.Event()\n"
            "cp.cuda.Device().synchronize()\n"
            "stream.begin_capture(); e.record(stream); other.wait_event(e)\n"
            "with stream: turn((4,), (128,), (x, y))\n"
            "with other: turn((4,), (128,), (x, z))\n"
            "f.record(other); stream.wait_event(f); graph = stream.end_capture()\n"
            + REPLAYS
            + "assert (y.get() == want).all() and (z.get() == want).all()"
        )
    )
    status, report = run(tmp_path, script)
    assert (status, recorded(report, "turn")) == (0, [200]), report


@pytest.mark.parametrize(("source", "status"), [(FIXED, 0), (RACY, 66)], ids=["fixed", "racy"])
def test_a_graph_of_torch(source: str, status: int, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    script = source + (
        "import torch\nkernel = torch.cuda._compile_kernel(SRC, 'turn')\n"
        "x, y = torch.arange(512, dtype=torch.float32, device='cuda'), torch.zeros(512, device='cuda')\n"
        "s = torch.cuda.Stream(); s.wait_stream(torch.cuda.current_stream())\n"
        "with torch.cuda.stream(s): kernel(grid=(4, 1, 1), block=(128, 1, 1), args=[x, y])\n"
        "torch.cuda.current_stream().wait_stream(s)\n"
        "graph = torch.cuda.CUDAGraph()\n"
        "with torch.cuda.graph(graph):\n    kernel(grid=(4, 1, 1), block=(128, 1, 1), args=[x, y])\n"
        "for _ in range(100): graph.replay()\ntorch.cuda.synchronize()\n"
    )
    if not status:
        script += "assert (y.view(4, 128) == x.view(4, 128).flip(1)).all()"
    found, report = run(tmp_path, script)
    assert (found, recorded(report, "turn")) == (status, [101]), report
