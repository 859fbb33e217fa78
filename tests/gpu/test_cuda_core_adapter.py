"""cuda.core on the GPU under `consan run`: what it compiles is instrumented, found and clean where it should be, results unchanged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from programs import engines, found, marked, run

pytestmark = pytest.mark.gpu

# Memory that both sides can read spares the scripts a second library.
HEAD = r"""
import ctypes, numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, ObjectCode, Program, ProgramOptions, launch
device = Device()
device.set_current()
stream = device.create_stream()
def shared(array):
    error, address = driver.cuMemAllocManaged(array.nbytes, driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value)
    assert int(error) == 0
    view = np.ctypeslib.as_array((ctypes.c_uint8 * array.nbytes).from_address(int(address))).view(array.dtype).reshape(array.shape)
    view[...] = array
    return int(address), view
arch = f"sm_{device.arch}"
"""
SAXPY = (
    HEAD
    + r'''
SRC = r"""
template <typename T> __global__ void saxpy(T a, const T *x, const T *y, T *out, size_t n) {
    for (size_t i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) out[i] = a * x[i] + y[i];
}
"""
program = Program(SRC, "c++", options=ProgramOptions(std="c++17", arch=arch))
kernel = program.compile("cubin", name_expressions=("saxpy<float>", "saxpy<double>")).get_kernel("saxpy<float>")
n = 5000
(px, x), (py, y), (po, out) = (shared(np.arange(n, dtype=np.float32)) for _ in range(3))
launch(stream, LaunchConfig(grid=8, block=128), kernel, np.float32(2), px, py, po, ctypes.c_size_t(n))
stream.sync()
assert (out == 3 * x).all()
'''
)
MATMUL = (
    HEAD
    + r'''
SRC = r"""
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float sa[16][16], sb[16][16];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        sa[y][x] = a[row * n + t + x];     // WRITE
        sb[y][x] = b[(t + y) * n + column];     // WRITE
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += sa[y][k] * sb[k][x];     // READ
        __syncthreads();
    }
    c[row * n + column] = sum;
}
"""
kernel = Program(SRC, "c++", options=ProgramOptions(arch=arch)).compile("cubin").get_kernel("matmul")
n = 64
(pa, a), (pb, b), (pc, c) = (shared(np.random.default_rng(s).integers(-3, 4, (n, n)).astype(np.float32)) for s in range(3))
launch(stream, LaunchConfig(grid=(4, 4), block=(16, 16)), kernel, pa, pb, pc, ctypes.c_int(n))
stream.sync()
'''
)
BULK_STORE = (
    HEAD
    + r'''
SRC = r"""
extern "C" __global__ void kernel(float *out, float *copy) {
    __shared__ alignas(128) float tile[64];
    unsigned t = threadIdx.x, from = (unsigned)__cvta_generic_to_shared(tile);
    tile[t] = t;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(out), "r"(from) : "memory");     // STORE
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    __syncthreads();
    copy[t] = out[t];     // READ
    if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
"""
kernel = Program(SRC, "c++", options=ProgramOptions(arch="sm_90a")).compile("cubin").get_kernel("kernel")
out, copy = device.allocate(256, stream=stream), device.allocate(256, stream=stream)
launch(stream, LaunchConfig(grid=1, block=64), kernel, out, copy)
stream.sync()
'''
)
PTX = (
    HEAD
    + r"""
SRC = 'extern "C" __global__ void count(int *x) { x[threadIdx.x] = threadIdx.x; }'
ptx = Program(SRC, "c++", options=ProgramOptions(arch=arch)).compile("ptx")
kernel = ptx.get_kernel("count")
p, x = shared(np.zeros(64, dtype=np.int32))
launch(stream, LaunchConfig(grid=1, block=64), kernel, p)
stream.sync()
assert (x == np.arange(64)).all()
"""
)
LINKED = PTX.replace("kernel = ptx.", 'kernel = Linker(ptx, options=LinkerOptions(arch=arch)).link("cubin").')
CLEAN = {"saxpy": SAXPY, "matmul": MATMUL + "assert (c == a @ b).all()", "ptx": PTX}


@pytest.fixture(autouse=True)
def _gpu() -> None:
    """Ask in a process of its own: a context here would hold memory."""
    pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    code = "from cuda.core import Device; Device().set_current()"
    if subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode:
        pytest.skip("no GPU")


@pytest.mark.parametrize("name", CLEAN)
def test_clean(name: str, tmp_path: Path) -> None:
    status, report = run(tmp_path, CLEAN[name])
    assert (status, report["verdict"]) == (0, "clean"), report
    assert engines(report) == {"record": 1}
    assert not report["uninstrumented"]


def test_a_race_points_at_the_lines_of_the_script(tmp_path: Path) -> None:
    status, report = run(tmp_path, MATMUL.replace("        __syncthreads();\n    }", "    }"))
    assert (status, report["verdict"]) == (66, "violations")
    assert found(report) == {("script.py", line) for line in marked(tmp_path, "// WRITE", "// READ")}


def test_a_launch_into_a_graph_is_recorded(tmp_path: Path) -> None:
    script = PTX + (
        "builder = device.create_graph_builder().begin_building()\n"
        "launch(builder, LaunchConfig(grid=1, block=64), kernel, p)\n"
        "graph = builder.end_building().complete()\n"
        "x[...] = 0\ngraph.launch(stream)\nstream.sync()\nassert (x == np.arange(64)).all()"
    )
    status, report = run(tmp_path, script)
    assert (status, report["verdict"]) == (0, "clean"), report
    assert engines(report) == {"record": 2}


RACY = """
extern "C" __global__ void count(int *x) {
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x;
    BARRIER;
    x[threadIdx.x] = 63 - tile[63 - threadIdx.x];
}
"""


def test_the_nodes_of_a_graph_definition_run_as_they_are(tmp_path: Path) -> None:
    script = "from cuda.core.graph import GraphDefinition\n" + PTX.partition("SRC =")[0] + (
        f"SRC = {RACY.replace('BARRIER', '__syncthreads()')!r}\n"
        'code = Program(SRC, "c++", options=ProgramOptions(arch=arch)).compile("cubin")\n'
        "p, x = shared(np.zeros(64, dtype=np.int32))\n"
        "graph = GraphDefinition()\n"
        'graph.launch(LaunchConfig(grid=1, block=64), code.get_kernel("count"), p)\n'
        "graph.instantiate().launch(stream)\nstream.sync()\nassert (x == np.arange(64)).all()"
    )  # fmt: skip
    _, report = run(tmp_path, script)
    assert report["verdict"] == "incomplete", report
    assert "nodes of a GraphDefinition are not recorded" in " ".join(report["incomplete"])


def test_a_linked_object_is_listed(tmp_path: Path) -> None:
    status, report = run(tmp_path, LINKED)
    assert status == 67, "nothing was instrumented"
    assert [(entry["name"], entry["launches"]) for entry in report["uninstrumented"]] == [("count", 1)]


def test_global_memory_is_named_by_the_buffers_of_the_launch(tmp_path: Path) -> None:
    _, report = run(tmp_path, BULK_STORE)
    (finding,) = [each for each in report["findings"] if each["kind"] == "missing-wait"]
    assert all("of argument 1" in access["name"] for access in finding["accesses"] if access["space"] == "global")
    assert any(access["space"] == "global" for access in finding["accesses"])
