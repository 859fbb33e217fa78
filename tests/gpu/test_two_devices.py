"""Programs that use two GPUs, under `consan run`: each launch is checked on its device, and compared with those of the other one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import test_native as native
from programs import engines, run, two_gpus

from consan.commands import doctor

pytestmark = pytest.mark.gpu
CUPY = '''
import cupy as cp
kernel = cp.RawKernel(r"""
extern "C" __global__ void fill(int *out, int value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }
""", "fill")
race = cp.RawKernel(r"""
extern "C" __global__ void race(int *out) { out[threadIdx.x] = blockIdx.x; }
""", "race")
buffers = []
for device in (0, 1):
    with cp.cuda.Device(device):
        buffers.append(cp.zeros(256, "i4"))
        cp.cuda.Device().synchronize()  # streams that do not wait for the default stream use them
def on(device, target, value):
    with cp.cuda.Device(device):
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            kernel((4,), (64,), (buffers[target], cp.int32(value)))
        stream.synchronize()
'''
PEERS = "for device in (0, 1):\n    with cp.cuda.Device(device): cp.cuda.runtime.deviceEnablePeerAccess(1 - device)\n"

BESIDE = """
streams, event = [], None
for device in (0, 1):
    with cp.cuda.Device(device):
        streams.append(cp.cuda.Stream(non_blocking=True))
for device in (0, 1):
    with cp.cuda.Device(device):
        with streams[device]:
            if device: EDGE
            kernel((4,), (64,), (buffers[0], cp.int32(device)))
            event = streams[device].record()
for device in (0, 1):
    with cp.cuda.Device(device): streams[device].synchronize()
"""

TRITON = """
import torch, triton, triton.language as tl
@triton.jit
def fill(out, value, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(out + at) + value)
buffers = [torch.zeros(1024, device=f"cuda:{device}") for device in (0, 1)]
for device in (0, 1, 0, 1):
    with torch.cuda.device(device):
        fill[(8,)](buffers[device], device + 1.0, BLOCK=128)
torch.cuda.synchronize(0); torch.cuda.synchronize(1)
assert (buffers[0] == 2).all() and (buffers[1] == 4).all()
"""

TORCH = '''
import torch
SRC = r"""
extern "C" __global__ void fill(float *out, double value) { out[blockIdx.x * blockDim.x + threadIdx.x] += value; }
"""
buffers = [torch.zeros(1024, device=f"cuda:{device}") for device in (0, 1)]
kernels = []
for device in (0, 1):
    with torch.cuda.device(device):
        kernels.append(torch.cuda._compile_kernel(SRC, "fill"))
for device in (0, 1, 0, 1):
    with torch.cuda.device(device):
        kernels[device](grid=(8, 1, 1), block=(128, 1, 1), args=[buffers[device], device + 1.0])
torch.cuda.synchronize(0); torch.cuda.synchronize(1)
assert (buffers[0] == 2).all() and (buffers[1] == 4).all()
'''

CORE = '''
import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
SRC = r"""
extern "C" __global__ void fill(int *out, int value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }
"""
for device in (0, 1, 0, 1):
    dev = Device(device); dev.set_current()
    stream = dev.create_stream()
    program = Program(SRC, "c++", ProgramOptions(arch=f"sm_{dev.arch}"))
    kernel = program.compile("cubin").get_kernel("fill")
    buffer = dev.allocate(4096, stream=stream)
    launch(stream, LaunchConfig(grid=8, block=128), kernel, buffer, np.int32(3))
    stream.sync()
'''

NUMBA = """
import numpy as np
from numba import cuda
@cuda.jit
def fill(out, value):
    out[cuda.grid(1)] = value
buffers = []
for device in (0, 1):
    with cuda.gpus[device]:
        buffers.append(cuda.to_device(np.zeros(1024, np.int32)))
for device in (0, 1, 0, 1):
    with cuda.gpus[device]:
        fill[8, 128](buffers[device], device + 5)
        cuda.synchronize()
for device in (0, 1):
    with cuda.gpus[device]:
        assert (buffers[device].copy_to_host() == device + 5).all()
"""

# Each device writes its own array, or the second one that of the first, behind an event or in no order.
NATIVE = """
#include <cstdio>
#include <cstdlib>
#define CHECK(call) do { cudaError_t error = call; if (error) { std::printf("%s\\n", cudaGetErrorString(error)); std::exit(3); } } while (0)
__global__ void fill(int *out, int value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }
int main(int count, char **words) {
    bool peers = count > 1, ordered = peers && words[1][0] == 'o';
    int *arrays[2];
    cudaStream_t streams[2];
    cudaEvent_t done;
    for (int device = 0; device < 2; ++device) {
        CHECK(cudaSetDevice(device));
        CHECK(cudaMalloc(&arrays[device], 1024));
        CHECK(cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking));
        if (peers) CHECK(cudaDeviceEnablePeerAccess(1 - device, 0));
    }
    CHECK(cudaSetDevice(0));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    fill<<<4, 64, 0, streams[0]>>>(arrays[0], 5);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(done, streams[0]));
    CHECK(cudaSetDevice(1));
    if (ordered) CHECK(cudaStreamWaitEvent(streams[1], done, 0));
    fill<<<4, 64, 0, streams[1]>>>(arrays[peers ? 0 : 1], 6);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceSynchronize());
    return 0;
}
"""


@pytest.fixture(autouse=True)
def _two_gpus() -> None:
    two_gpus()


def launches(report: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for kernel in report["kernels"]:
        if kernel["launches"]:
            found[kernel["name"]] = found.get(kernel["name"], 0) + kernel["launches"]
    return found


def test_cupy_on_two_devices_in_turn(tmp_path: Path) -> None:
    pytest.importorskip("cupy")
    script = CUPY + "for device in (0, 1, 0, 1): on(device, device, device + 5)\nassert [int(b.get().min()) for b in buffers] == [5, 6]"
    status, report = run(tmp_path, script)
    assert (status, report["verdict"]) == (0, "clean"), report
    assert launches(report)["fill"] == 4
    assert set(engines(report)) == {"record"}


def test_a_race_on_the_second_device_is_found(tmp_path: Path) -> None:
    pytest.importorskip("cupy")
    status, report = run(tmp_path, CUPY + "with cp.cuda.Device(1): race((2,), (64,), (buffers[1],)); cp.cuda.Device(1).synchronize()")
    assert status == 66, report
    assert {finding["kind"] for finding in report["findings"]} == {"global-race"}


def test_launches_that_write_memory_of_a_peer_in_turn_are_clean(tmp_path: Path) -> None:
    pytest.importorskip("cupy")
    script = CUPY + PEERS + "on(0, 1, 7); on(1, 1, 8); on(1, 0, 9)\nassert (buffers[1] == 8).all() and (buffers[0] == 9).all()"
    status, report = run(tmp_path, script)
    assert (status, report["verdict"]) == (0, "clean"), report
    assert launches(report)["fill"] == 3


@pytest.mark.parametrize("ordered", [False, True])
def test_launches_of_two_gpus_at_the_same_bytes(tmp_path: Path, ordered: bool) -> None:
    pytest.importorskip("cupy")
    status, report = run(tmp_path, CUPY + PEERS + BESIDE.replace("EDGE", "streams[1].wait_event(event)" if ordered else "pass"))
    assert (status, report["verdict"]) == ((0, "clean") if ordered else (66, "violations")), report
    assert {finding["kind"] for finding in report["findings"]} == (set() if ordered else {"global-race"})


def test_the_called_hooks_take_two_devices(tmp_path: Path) -> None:
    pytest.importorskip("cupy")
    status, report = run(tmp_path, CUPY + "for device in (0, 1): on(device, device, 5)", "--engine", "inline", "--global", "off")
    assert (status, report["verdict"]) == (0, "clean"), report
    assert launches(report)["fill"] == 2


@pytest.mark.parametrize(("framework", "script"), [("triton", TRITON), ("torch", TORCH), ("cuda.core", CORE), ("numba", NUMBA)])
def test_other_frameworks_on_two_devices_in_turn(tmp_path: Path, framework: str, script: str) -> None:
    pytest.importorskip(framework)
    status, report = run(tmp_path, script)
    assert (status, report["verdict"]) == (0, "clean"), report
    assert sum(count for name, count in launches(report).items() if "fill" in name) == 4  # Numba has longer names
    assert set(engines(report)) == {"record"}


@pytest.mark.parametrize(("words", "status"), [((), 0), (("ordered",), 0), (("racing",), 66)], ids=["own arrays", "ordered", "racing"])
def test_a_native_program_on_two_devices(tmp_path: Path, words: tuple[str, ...], status: int) -> None:
    native.build(tmp_path, source=NATIVE)
    output = tmp_path / "report.json"
    command = [sys.executable, "-m", "consan", "run", "-o", str(output), "./app", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    report = json.loads(output.read_text())
    assert sum(launches(report).values()) == 2
    assert {finding["kind"] for finding in report["findings"]} == ({"global-race"} if status else set())


def test_doctor_names_the_peers() -> None:
    """As torch says."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    _, found = doctor.gpus()
    each = range(torch.cuda.device_count())
    able = torch.cuda.can_device_access_peer
    assert [gpu.peers for gpu in found] == [tuple(peer for peer in each if peer != device and able(device, peer)) for device in each]
