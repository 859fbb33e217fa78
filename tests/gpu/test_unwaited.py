"""Programs that go on beside their recorded launches, on a GPU: what repeats is counted; what is new, faults and hangs are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import engines, run

pytestmark = pytest.mark.gpu

HEAD = '''
import cupy as cp
kernel = cp.RawKernel(r"""
extern "C" __global__ void shift(float *x, int how, int n) {
    __shared__ float tile[128];
    x += blockIdx.x * 128;
    tile[threadIdx.x] = x[threadIdx.x];
    if (how != 1) __syncthreads();
    if (how == 2) x[1ull << 40] = 1;  // an illegal address
    unsigned rounds = n;  // the assembler does not know what they leave, so it keeps the loop
    for (long long i = 0; i < (long long)n << 20; ++i) rounds = rounds * 1664525 + 1013904223;
    x[threadIdx.x] = tile[(threadIdx.x + 33) % 128] + (rounds == 1);
}
""", "shift")
x = cp.zeros(1 << 16, cp.float32)
def launch(how=0, n=0, ctas=4): kernel((ctas,), (128,), (x, cp.int32(how), cp.int32(n)))
'''


@pytest.fixture(autouse=True)
def _gpu() -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not cupy.is_available():
        pytest.skip("no GPU")


def test_what_repeats_is_counted(tmp_path: Path) -> None:
    status, report = run(tmp_path, HEAD + "for _ in range(300): launch()")
    (shift,) = (kernel for kernel in report["kernels"] if kernel["name"] == "shift")
    assert (status, report["verdict"]) == (0, "clean"), report
    assert (shift["launches"], shift["ctas"], shift["histories"]) == (300, 1200, 1)


@pytest.mark.parametrize("after", [0, 50])
def test_a_race_of_one_launch_is_found(after: int, tmp_path: Path) -> None:
    """Also in the last launch before the end."""
    status, report = run(tmp_path, HEAD + f"for _ in range(50): launch()\nlaunch(1)\nfor _ in range({after}): launch()")
    assert (status, report["verdict"]) == (66, "violations")
    assert [(finding["kind"], finding["ctas"]) for finding in report["findings"]] == [("data-race", 4)]


def test_streams(tmp_path: Path) -> None:
    """A module's variables serve one stream at a time. All streams write to one array, too."""
    streams = "streams = [cp.cuda.Stream(non_blocking=True) for _ in range(4)]\n"
    body = "for i in range(100):\n    with streams[i % 4]: launch(i == 57, n=1)\nfor s in streams: s.synchronize()"
    status, report = run(tmp_path, HEAD + streams + body)
    assert status == 66
    found = {(finding["kind"], finding["situation"]) for finding in report["findings"] if finding["kind"] != "data-race"}
    assert found == {("global-race", "no-stream-edge")}
    assert [finding["ctas"] for finding in report["findings"] if finding["kind"] == "data-race"] == [4]
    assert engines(report)["record"] >= 100
    assert not report["incomplete"]


def test_a_fault_is_told_of_its_kernel(tmp_path: Path) -> None:
    status, report = run(tmp_path, HEAD + "for i in range(20): launch(2 if i == 12 else 0)\ncp.cuda.Device().synchronize()")
    assert (status, report["verdict"]) == (66, "violations")
    assert "fault" in {finding["kind"] for finding in report["findings"]}
    assert any(why.startswith("shift, or a kernel beside it") and "ended with CUDA_ERROR" in why for why in report["incomplete"]), report
    assert any(why.startswith("shift left no log") for why in report["incomplete"])


END = "cp.cuda.Device().synchronize()\nlaunch()"
KNOWN = "import time\nfor _ in range(50): launch(); time.sleep(0.01)\n"  # launches that run as they are, if nobody names a limit
CAPTURED = """stream = cp.cuda.Stream(non_blocking=True)
launch()
cp.cuda.Device().synchronize()
with stream:
    stream.begin_capture()
    launch(0, 1 << 30)
    graph = stream.end_capture()
graph.launch(stream)"""
HANGS = {
    "at once": f"launch()\nlaunch(0, 1 << 30)\n{END}",
    "among known launches": f"{KNOWN}launch(0, 1 << 30)\n{END}",
    "on another stream": "launch()\ncp.cuda.Device().synchronize()\nwith cp.cuda.Stream(non_blocking=True): launch(0, 1 << 30)\n",
    "in a graph": CAPTURED,
}


@pytest.mark.parametrize("program", HANGS.values(), ids=HANGS)
def test_a_kernel_that_does_not_end_is_stopped(program: str, tmp_path: Path) -> None:
    _, report = run(tmp_path, HEAD + program, CONSAN_TIMEOUT="3")
    assert report["verdict"] == "incomplete"
    assert any(why.startswith("shift did not run to its end: stopped after 3 s") for why in report["incomplete"]), report["incomplete"]
