"""Programs that call the CUDA driver, under `consan run --device cpu`: unmodified, with a finding and its repaired twin."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

KERNEL = r'''
SOURCE = r"""
extern "C" __global__ void reverse(float *out, const float *in) {
    __shared__ float tile[128];
    tile[threadIdx.x] = in[threadIdx.x];
#ifndef RACY
    __syncthreads();
#endif
    out[threadIdx.x] = tile[127 - threadIdx.x];
}
"""
'''
HELPERS = """
import sys
import numpy as np
from cuda.bindings import driver, nvrtc

def ok(answer):
    assert int(answer[0]) == 0, answer
    return answer[1] if len(answer) == 2 else answer[1:]

x, y, racy = np.arange(128, dtype=np.float32), np.zeros(128, np.float32), "racy" in sys.argv
"""
BINDINGS = (
    KERNEL
    + HELPERS
    + """
ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))))
program = ok(nvrtc.nvrtcCreateProgram(SOURCE.encode(), b"reverse.cu", 0, [], []))
options = [b"-arch=sm_90", b"-lineinfo"] + [b"-DRACY"] * racy
ok(nvrtc.nvrtcCompileProgram(program, len(options), options))
code = b" " * ok(nvrtc.nvrtcGetCUBINSize(program))
ok(nvrtc.nvrtcGetCUBIN(program, code))
kernel = ok(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(code)), b"reverse"))
a, b, stream = ok(driver.cuMemAlloc(x.nbytes)), ok(driver.cuMemAlloc(x.nbytes)), ok(driver.cuStreamCreate(0))
ok(driver.cuMemcpyHtoDAsync(a, x.ctypes.data, x.nbytes, stream))
values = np.array([int(b), int(a)], np.uint64)
places = np.array([values[i:].ctypes.data for i in range(2)], np.uint64)
ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, 0, stream, places.ctypes.data, 0))
ok(driver.cuMemcpyDtoHAsync(y.ctypes.data, b, y.nbytes, stream))
ok(driver.cuStreamSynchronize(stream))
assert (y == x[::-1]).all()
"""
)
CORE = (
    KERNEL
    + HELPERS
    + """
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
device = Device()
device.set_current()
stream = device.create_stream()
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}", define_macro=["RACY"] if racy else None)
kernel = Program(SOURCE, code_type="c++", options=options).compile("cubin").get_kernel("reverse")
a, b = device.allocate(x.nbytes, stream=stream), device.allocate(x.nbytes, stream=stream)
ok(driver.cuMemcpyHtoDAsync(int(a.handle), x.ctypes.data, x.nbytes, int(stream.handle)))
launch(stream, LaunchConfig(grid=1, block=128), kernel, b, a)
ok(driver.cuMemcpyDtoHAsync(y.ctypes.data, int(b.handle), y.nbytes, int(stream.handle)))
stream.sync()
assert (y == x[::-1]).all()
"""
)
TEMPLATE = """
template <typename T> __global__ void reverse(T *out, const T *in) {
    __shared__ T tile[128];
    tile[threadIdx.x] = in[127 - threadIdx.x];
    __syncthreads();
    T sum = tile[threadIdx.x] + WEIGHT * (int)tile[(threadIdx.x + 64) % 128];
#ifndef RACY
    __syncthreads();
#endif
    tile[threadIdx.x] = sum;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}
"""
REMOVED = (
    BINDINGS.replace(KERNEL, f'SOURCE = r"""#include "weight.h"{TEMPLATE}"""\n')
    .replace('b"reverse.cu", 0, [], [])', 'b"", 1, [b"#define WEIGHT 0"], [b"weight.h"])')
    .replace("options = [", 'ok(nvrtc.nvrtcAddNameExpression(program, b"reverse<int>"))\noptions = [')
    .replace("code = b", 'name = ok(nvrtc.nvrtcGetLoweredName(program, b"reverse<int>"))\ncode = b')
    .replace('b"reverse")', "name)")
    .replace("np.float32", "np.int32")
)


def run(folder: Path, text: str, *words: str, unoptimized: str = "off") -> tuple[int, dict[str, Any]]:
    """The status and the report of a program."""
    (folder / "program.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "consan",
        "run",
        "--device",
        "cpu",
        "--unoptimized",
        unoptimized,
        "-o",
        "report.json",
        "program.py",
        *words,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (folder / "report.json").exists(), done.stderr
    return done.returncode, json.loads((folder / "report.json").read_text())


@pytest.mark.parametrize(("package", "text"), [("cuda.bindings", BINDINGS), ("cuda.core", CORE)])
@pytest.mark.parametrize("racy", [False, True])
def test_a_program_that_calls_the_driver(tmp_path: Path, package: str, text: str, racy: bool) -> None:
    pytest.importorskip(package, exc_type=ImportError)
    status, report = run(tmp_path, text, *["racy"] * racy)
    assert (status, report["verdict"]) == ((66, "violations") if racy else (0, "clean"))
    assert [(each["name"], each["launches"]) for each in report["kernels"]] == [("reverse", 1)]
    for finding in report["findings"]:
        assert (finding["kind"], finding["buffer"]["name"]) == ("data-race", "tile")
        assert {Path(access["file"]).name for access in finding["accesses"]} == {"program.py"}
    assert len(report["findings"]) == racy


@pytest.mark.parametrize("racy", [False, True])
def test_a_race_that_the_compiler_removes(tmp_path: Path, racy: bool) -> None:
    """The text is compiled again with its headers and the expressions that name its kernels."""
    pytest.importorskip("cuda.bindings", exc_type=ImportError)
    status, report = run(tmp_path, REMOVED, *["racy"] * racy, unoptimized="on")
    assert (status, report["verdict"], len(report["findings"])) == (0, "clean", racy)
    assert not [each for each in report["notes"] if "not compared" in each]
    lines = REMOVED.splitlines()
    for finding in report["findings"]:
        assert (finding["severity"], finding["unoptimized"]) == ("warning", True)
        assert ["WEIGHT" in lines[access["line"] - 1] for access in finding["accesses"]] == [True, False]
        assert finding["verified"]["steps"], "repaired in the source"
