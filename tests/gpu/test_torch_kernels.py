"""`torch.cuda._compile_kernel` on the GPU under `consan run`: found and clean where it should be, results unchanged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from programs import engines, found, marked, run

pytestmark = pytest.mark.gpu

SUM = r'''
import torch
SRC = r"""
extern "C" __global__ void sums(const float *x, float *out) {
    __shared__ float tile[256];
    int t = threadIdx.x;
    tile[t] = x[blockIdx.x * 256 + t];     // WRITE
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 256; i++) sum += tile[i];     // READ
    if (t == 0) out[blockIdx.x] = sum;
}
"""
kernel = torch.cuda._compile_kernel(SRC, "sums")
x, out = torch.ones(1024, device="cuda"), torch.zeros(4, device="cuda")
kernel(grid=(4, 1, 1), block=(256, 1, 1), args=[x, out])
torch.cuda.synchronize()
'''


@pytest.fixture(autouse=True)
def _gpu() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    code = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    if subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode:
        pytest.skip("no GPU")


def test_clean(tmp_path: Path) -> None:
    status, report = run(tmp_path, SUM + "assert (out == 256).all()")
    assert (status, report["verdict"]) == (0, "clean"), report
    assert [(kernel["name"], kernel["launches"]) for kernel in report["kernels"]] == [("sums", 1)]
    assert not report["uninstrumented"]
    assert engines(report) == {"record": 1}


def test_a_launch_into_a_graph_is_recorded(tmp_path: Path) -> None:
    script = SUM + (
        "graph = torch.cuda.CUDAGraph()\n"
        "with torch.cuda.graph(graph):\n    kernel(grid=(4, 1, 1), block=(256, 1, 1), args=[x, out])\n"
        "out.zero_(); graph.replay(); torch.cuda.synchronize(); assert (out == 256).all()"
    )
    status, report = run(tmp_path, script)
    assert (status, report["verdict"]) == (0, "clean"), report
    assert engines(report) == {"record": 2}


def test_sessions_one_after_another(tmp_path: Path) -> None:
    script = SUM + (
        "import consan\n"
        "for expected in (1, 2):\n"
        "    with consan.check(device='gpu') as report:\n"
        "        kernel = torch.cuda._compile_kernel(SRC, 'sums')\n"
        "        for _ in range(expected): kernel(grid=(4, 1, 1), block=(256, 1, 1), args=[x, out])\n"
        "    assert [kernel.launches for kernel in report.kernels] == [expected], report\n"
        "    out.zero_(); kernel(grid=(4, 1, 1), block=(256, 1, 1), args=[x, out]); assert (out == 256).all()\n"
    )
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr


def test_a_race_points_at_the_lines_of_the_script(tmp_path: Path) -> None:
    status, report = run(tmp_path, SUM.replace("    __syncthreads();\n", ""))
    assert (status, report["verdict"]) == (66, "violations")
    assert found(report) == {("script.py", line) for line in marked(tmp_path, "// WRITE", "// READ")}


TORCHRUN = """
import subprocess, sys
subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "1", "program.py"], check=True)
"""
SPAWN = """
import torch.multiprocessing
from work import work
if __name__ == "__main__":
    torch.multiprocessing.spawn(work, nprocs=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("script", [TORCHRUN, SPAWN], ids=["torchrun", "spawn"])
def test_processes_that_torch_starts(tmp_path: Path, script: str) -> None:
    (tmp_path / "program.py").write_text(SUM.replace("    __syncthreads();\n", ""))
    (tmp_path / "work.py").write_text("def work(rank):\n    import program\n")
    status, report = run(tmp_path, script)
    assert (status, report["verdict"]) == (66, "violations"), report
    assert {finding["kernel"] for finding in report["findings"]} == {"sums"}
