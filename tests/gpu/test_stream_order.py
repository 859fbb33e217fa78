"""Launches in several streams of a program on a GPU, compared under plain `consan run`: without an edge a race, with one clean."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import run

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

CUPY = '''
import cupy as cp
kernel = cp.RawKernel(r"""
extern "C" __global__ void adds(float *out, const float *from, const int *to, float by) {
    int at = to[blockIdx.x * 256 + threadIdx.x];  // where it writes follows from memory
    out[at] = from[at] + by;
}
""", "adds")
n = 1 << 14
x, y, z, to = cp.zeros(n, cp.float32), cp.zeros(n, cp.float32), cp.zeros(n, cp.float32), cp.arange(n, dtype=cp.int32)
def launch(out, source, by=1): kernel((n // 256,), (256,), (out, source, to, cp.float32(by)))
first, second = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
cp.cuda.Device().synchronize()
'''
TORCH = """
import torch, triton, triton.language as tl
@triton.jit
def adds(out, source, to, by, B: tl.constexpr):
    at = tl.load(to + tl.program_id(0) * B + tl.arange(0, B))
    tl.store(out + at, tl.load(source + at) + by)
n = 1 << 14
x, y, z = (torch.zeros(n, device="cuda") for _ in range(3))
to = torch.arange(n, dtype=torch.int32, device="cuda")
def launch(out, source, by=1): adds[(n // 256,)](out, source, to, by, B=256)
first, second = torch.cuda.Stream(), torch.cuda.Stream()
torch.cuda.synchronize()
"""
# What the program does in two streams, and how they get an edge: without it there is a race.
WRITES, READS = "with first: launch(y, x)\n", "with second: launch(z, y)"
EVENT = "second.wait_event(first.record())"
CUPY_PROGRAMS = {
    "writes, reads": (f"{WRITES}{{}}\n{READS}", EVENT),
    "writes twice": (f"{WRITES}{{}}\nwith second: launch(y, x, 2)", "first.synchronize()"),
    "reads, writes": ("with first: launch(z, y)\n{}\nwith second: launch(y, x)", "e = first.record(); e.synchronize()"),
    "a copy": (f"{WRITES}{{}}\nwith second: y.get(second)", EVENT),
    "a memset": (f"{WRITES}{{}}\ny.data.memset_async(0, 64, second)", "cp.cuda.Device().synchronize()"),
    "many": (f"for i in range(6):\n    {WRITES}    {{}}\n    {READS}\n    first.wait_event(second.record())", EVENT),
    "default": (f"launch(y, x)\n{{}}\n{READS}", "cp.cuda.Stream.null.synchronize()"),
}
T_WRITES, T_SECOND = "with torch.cuda.stream(first): launch(y, x)\n", "with torch.cuda.stream(second):"
TORCH_PROGRAMS = {
    "writes, reads": (f"{T_WRITES}{{}}\n{T_SECOND} launch(z, y)", "second.wait_stream(first)"),
    "writes twice": (f"{T_WRITES}{{}}\n{T_SECOND} launch(y, x, 2)", "first.synchronize()"),
    "default": (f"launch(y, x)\n{{}}\n{T_SECOND} launch(z, y)", "second.wait_stream(torch.cuda.current_stream())"),
    "a copy": (f"{T_WRITES}{{}}\n{T_SECOND} z.copy_(y)", "e = first.record_event(); second.wait_event(e)"),
}


def gap(report: dict[str, Any]) -> str:
    return " ".join(area for area in report["not_checked"] if area.startswith("global-memory"))


def racy(folder: Path, script: str, edge: str) -> None:
    status, report = run(folder, script)
    assert (status, report["verdict"]) == (66, "violations"), (gap(report), report["notes"], report["incomplete"])
    assert {finding["situation"] for finding in report["findings"]} == {"no-stream-edge"}, report["findings"]
    assert any(edge in finding["fix"] for finding in report["findings"]), report["findings"]


def clean(folder: Path, script: str, *, first: bool = False) -> None:
    """`first`: a kernel has more launches than those that are looked at."""
    status, report = run(folder, script)
    assert (status, report["verdict"], report["findings"]) == (0, "clean", []), report
    assert "global-memory" in report["checked"] or (first and "only the first launches" in gap(report)), gap(report)
    assert "compared" not in gap(report)


def needs(*names: str) -> None:
    for name in names:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("name", CUPY_PROGRAMS)
def test_cupy(name: str, tmp_path: Path) -> None:
    needs("cupy")
    program, edge = CUPY_PROGRAMS[name]
    racy(tmp_path, CUPY + program.format("pass"), "stream")
    clean(tmp_path, CUPY + program.format(edge))


CONSTANTS = '''
import cupy as cp, numpy as np
module = cp.RawModule(code=r"""
__constant__ float weights[2][256];
extern "C" __global__ void weigh(float *out, const float *from, int half) {
    int at = blockIdx.x * 256 + threadIdx.x;
    out[at] = from[at] * weights[half][threadIdx.x];
}
""")
kernel, weights = module.get_function("weigh"), module.get_global("weights")
x, y, values = cp.ones(1024, cp.float32), cp.zeros(1024, cp.float32), np.ones(256, np.float32)
first, second = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
cp.cuda.Device().synchronize()
with first: kernel((4,), (256,), (y, x, np.int32(0)))
{}
'''
COPIED = "(weights + {}).copy_from_host_async(values.ctypes.data, 1024, second)"


@pytest.mark.parametrize("whole", [(), ("--global", "on")], ids=["", "all of global memory"])
def test_constants_that_a_copy_writes(whole: tuple[str, ...], tmp_path: Path) -> None:
    """The address of a constant in a kernel is the one that the driver gives, in the program's own module and in another form of it."""
    needs("cupy")
    copied, other = COPIED.format(0), COPIED.format(1024)
    status, report = run(tmp_path, CONSTANTS.replace("{}", copied), *whole)
    assert (status, {each["situation"] for each in report["findings"]}) == (66, {"no-stream-edge"}), report
    for right in (f"{EVENT}; {copied}", other):
        status, report = run(tmp_path, CONSTANTS.replace("{}", right), *whole)
        assert (status, report["verdict"], report["findings"]) == (0, "clean", []), report
        assert "compared" not in gap(report)


# Compiled code notes the calls for the default stream after the first 256, until there is another stream.
NOTED = (
    CUPY.replace("first, second", "pass #").replace("{", "{{").replace("}", "}}")
    + """
for _ in range(2000): w = x + 1; z.data.memset_async(0, 64, cp.cuda.Stream.null); e = cp.cuda.Stream.null.record()
cp.cuda.Stream.null.synchronize()
y.data.memset_async(0, 64, cp.cuda.Stream.null)
{}
first = cp.cuda.Stream(non_blocking=True)
with first: launch(y, x)
"""
)


def test_calls_that_are_noted(tmp_path: Path) -> None:
    needs("cupy")
    racy(tmp_path, NOTED.format("pass"), "stream")
    clean(tmp_path, NOTED.format("cp.cuda.Stream.null.synchronize()"))


@pytest.mark.parametrize("name", TORCH_PROGRAMS)
def test_torch(name: str, tmp_path: Path) -> None:
    needs("triton"), needs("torch")
    program, edge = TORCH_PROGRAMS[name]
    if name == "a copy":  # torch's own kernel may copy: nobody knows what it accesses
        _, report = run(tmp_path, TORCH + program.format("pass"))
        assert report["findings"] or "are not known" in gap(report), report
    else:
        racy(tmp_path, TORCH + program.format("pass"), "second.wait_stream(first)")
    clean(tmp_path, TORCH + program.format(edge))


def test_blocking_streams_and_the_default_stream(tmp_path: Path) -> None:
    """They wait for each other, so there is no race."""
    needs("cupy")
    clean(tmp_path, CUPY + "third = cp.cuda.Stream()\nlaunch(y, x)\nwith third: launch(z, y)\nlaunch(y, x)")


def test_memory_that_a_pool_gives_again(tmp_path: Path) -> None:
    """CuPy's pool gives the memory of an array that another stream still uses."""
    needs("cupy")
    again = "with first: a = cp.zeros(n, cp.float32)\n{}\nwith second: launch(z, a)\ndel a\n{}\n"
    again += "with first:\n    b = cp.empty(n, cp.float32)\n    launch(b, x)"
    ready = "first.synchronize()"
    racy(tmp_path, CUPY + again.format(ready, "pass"), "stream")
    clean(tmp_path, CUPY + again.format(ready, "first.wait_event(second.record())"))


def test_what_nobody_knows_is_named(tmp_path: Path) -> None:
    """A library's kernel beside one that is recorded."""
    needs("torch", "triton")
    body = "with torch.cuda.stream(first): w = torch.sin(x)\n{}\nwith torch.cuda.stream(second): launch(z, y)"
    _, report = run(tmp_path, TORCH + body.format("pass"))
    assert (report["verdict"], report["findings"]) == ("clean", []), report
    assert "between adds and what may run at the same time in another stream: all accesses of" in gap(report), gap(report)
    clean(tmp_path, TORCH + body.format("second.wait_stream(first)"))


GRAPH = '''
affine = cp.RawKernel(r"""
extern "C" __global__ void affine(float *out, const float *from, float by) {
    int at = blockIdx.x * 256 + threadIdx.x;
    out[at] = from[at] + by;
}
""", "affine")
def node(out, source): affine((n // 256,), (256,), (out, source, cp.float32(1)))
node(x, z)
cp.cuda.Device().synchronize()
first.begin_capture()
with first: node(y, x)
fork = cp.cuda.Event(disable_timing=True); fork.record(first)
'''
JOIN = """
join = cp.cuda.Event(disable_timing=True); join.record(second); first.wait_event(join)
graph = first.end_capture()
"""


def test_nodes_of_a_graph(tmp_path: Path) -> None:
    """Two branches of a graph: the second one begins behind the first node, or behind the fork before it."""
    needs("cupy")
    before = GRAPH.replace("with first: node(y, x)\n", "").replace("record(first)", "record(first); ") + "with first: node(y, x)\n"
    branch = "second.wait_event(fork)\nwith second: node(z, y)\n"
    launches = "for _ in range(3): graph.launch(first)\nfirst.synchronize()"
    racy(tmp_path, CUPY + before + branch + JOIN + launches, "stream")
    clean(tmp_path, CUPY + GRAPH + branch + JOIN + launches, first=True)


@pytest.mark.parametrize("kind", ["launch", "node"])
def test_a_graph_beside_a_launch(kind: str, tmp_path: Path) -> None:
    needs("cupy")
    capture = GRAPH + "graph = first.end_capture()\ngraph.launch(first)\n"
    behind = {"launch": READS, "node": "with second: node(z, y)"}[kind]
    racy(tmp_path, CUPY + capture + behind, "stream")
    clean(tmp_path, CUPY + capture + EVENT + "\n" + behind)


def test_a_graph_of_torch(tmp_path: Path) -> None:
    """Its nodes are machine code: what runs beside them is named."""
    needs("torch", "triton")
    capture = "launch(y, x)\ntorch.cuda.synchronize()\ngraph = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(graph): w = x * 2\n"
    body = f"{capture}graph.replay()\nwith torch.cuda.stream(second): launch(z, y)"
    _, report = run(tmp_path, TORCH + body)
    assert not report["findings"], report
    assert "between adds and what may run at the same time in another stream" in gap(report), gap(report)


NATIVE = r"""
#include <cstdio>
#include <cuda_runtime.h>
__global__ void adds(float *out, const float *from, const int *to, float by) {
    int at = to[blockIdx.x * 256 + threadIdx.x];
    out[at] = from[at] + by;
}
__global__ void affine(float *out, const float *from, float by) {
    int at = blockIdx.x * 256 + threadIdx.x;
    out[at] = from[at] + by;
}
#define CHECK(call) do { cudaError_t e = call; if (e) { printf("%s: %s\n", #call, cudaGetErrorString(e)); return 1; } } while (0)
int main() {
    const int n = 1 << 14;
    float *x, *y, *z;
    int *to;
    static int host[1 << 14];
    for (int i = 0; i < n; i++) host[i] = i;
    cudaStream_t first, second;
    cudaEvent_t event;
    CHECK(cudaMalloc(&x, 4 * n));
    CHECK(cudaMalloc(&y, 4 * n));
    CHECK(cudaMalloc(&z, 4 * n));
    CHECK(cudaMalloc(&to, 4 * n));
    CHECK(cudaMemcpy(to, host, 4 * n, cudaMemcpyHostToDevice));
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    adds<<<n / 256, 256>>>(x, y, to, 1);
    CHECK(cudaDeviceSynchronize());
    { BODY }
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    return 0;
}
"""
N_EVENT = "CHECK(cudaEventRecord(event, first)); CHECK(cudaStreamWaitEvent(second, event, 0));"
N_GRAPH = """
cudaGraph_t graph; cudaGraphExec_t exec;
CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
affine<<<n / 256, 256, 0, first>>>(y, x, 1);
CHECK(cudaStreamEndCapture(first, &graph));
CHECK(cudaGraphInstantiate(&exec, graph, 0));
CHECK(cudaGraphLaunch(exec, first));
"""
N_HOST = "CHECK(cudaStreamSynchronize(first));"
N_WRITES = "affine<<<n / 256, 256, 0, first>>>(y, x, 1); {} "
N_READS = "affine<<<n / 256, 256, 0, second>>>(z, y, 1);"
NATIVE_PROGRAMS = {
    "looked at": ("adds<<<n / 256, 256, 0, first>>>(y, x, to, 1); {} adds<<<n / 256, 256, 0, second>>>(z, y, to, 1);", N_EVENT),
    "by its text": (f"{N_WRITES}affine<<<n / 256, 256, 0, second>>>(y, x, 2);", N_EVENT),
    "host": (f"adds<<<n / 256, 256, 0, first>>>(y, x, to, 1); {{}} {N_READS}", N_HOST),
    "a copy": (f"{N_WRITES}CHECK(cudaMemcpyAsync(z, y, 4 * n, cudaMemcpyDeviceToDevice, second));", N_EVENT),
    "a graph": (f"{N_GRAPH}{{}} {N_READS}", N_EVENT),
}


@pytest.mark.parametrize("name", NATIVE_PROGRAMS)
def test_native(name: str, tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not Path(nvcc).exists():
        pytest.skip("no nvcc")
    program, edge = NATIVE_PROGRAMS[name]
    for between, findings in (("", {"no-stream-edge"}), (edge, set())):
        body = program.replace("{}", between)
        (tmp_path / "app.cu").write_text(NATIVE.replace("BODY", body))
        target = "arch=compute_90a,code=compute_90a"
        subprocess.run([nvcc, "-lineinfo", "-gencode", target, "-o", "app", "app.cu"], cwd=tmp_path, check=True)
        output = tmp_path / "report.json"
        command = [sys.executable, "-m", "consan", "run", "--format", "json", "-o", str(output), "./app"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
        report = json.loads(output.read_text())
        assert {finding["situation"] for finding in report["findings"]} == findings, (
            between,
            gap(report),
            report["incomplete"],
            done.stderr,
        )
        if not findings:
            assert (done.returncode, report["verdict"]) == (0, "clean"), (done.stdout, report["incomplete"])
            assert "global-memory" in report["checked"] or name == "a graph", gap(report)  # a node takes called hooks
