"""Programs built by nvcc under `consan run` on the GPU: found and clean where they should be, results as without, and what it costs."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from programs import found

from consan.toolchain import find

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

PROGRAM = r"""
#include <cstdio>
#include <cuda_runtime.h>
__device__ int bias;
__global__ void sums(const float *x, float *out) {
    __shared__ float tile[256];
    int t = threadIdx.x;
    tile[t] = x[blockIdx.x * 256 + t];  // WRITE
#ifndef RACY
    __syncthreads();
#endif
    float sum = 0;
    for (int i = 0; i < 256; i++) sum += tile[(t + i) % 256];  // READ
    if (t == 0) out[blockIdx.x] = sum + bias;
}
__global__ void doubled(float *out) { out[threadIdx.x] *= 2; }
#define CHECK(call) do { cudaError_t e = call; if (e) { printf("%s: %s\n", #call, cudaGetErrorString(e)); return 1; } } while (0)
int main() {
    float *x, *out, host[1024];
    for (float &f : host) f = 1;
    int three = 3;
    cudaStream_t stream;
    CHECK(cudaMalloc(&x, sizeof host));
    CHECK(cudaMalloc(&out, 16));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMemcpyToSymbol(bias, &three, sizeof three));
    CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    for (int i = 0; i < 10; i++) sums<<<4, 256, 0, stream>>>(x, out);
    CHECK(cudaGetLastError());
    doubled<<<1, 4, 0, stream>>>(out);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
#ifdef GRAPH
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    sums<<<4, 256, 0, stream>>>(x, out);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 5; i++) CHECK(cudaGraphLaunch(exec, stream));
    doubled<<<1, 4, 0, stream>>>(out);
    CHECK(cudaStreamSynchronize(stream));
#endif
    CHECK(cudaMemcpy(host, out, 16, cudaMemcpyDeviceToHost));
    printf("%g %g %g %g\n", host[0], host[1], host[2], host[3]);
#ifdef RESET
    CHECK(cudaDeviceReset());
#endif
    return 7;
}
"""
RESULT = "518 518 518 518\n"  # (256 + 3) * 2


# The driver's API, and NVRTC asked for machine code, as nvFuser does it.
DRIVER_PROGRAM = r"""
#include <cstdio>
#include <vector>
#include <cuda.h>
#include <nvrtc.h>
const char *source = R"(extern "C" __global__ void sums(float *out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = threadIdx.x;
    BARRIER
    out[threadIdx.x] = tile[63 - threadIdx.x];
})";
#define CHECK(call) do { int e = call; if (e) { printf("%s: %d\n", #call, e); return 1; } } while (0)
int main() {
    nvrtcProgram program;
    size_t bytes;
#ifdef RACY
    const char *options[] = {"-arch=sm_90a", "-DBARRIER="};
#else
    const char *options[] = {"-arch=sm_90a", "-DBARRIER=__syncthreads();"};
#endif
    CHECK(nvrtcCreateProgram(&program, source, "sums.cu", 0, nullptr, nullptr));
    CHECK(nvrtcCompileProgram(program, 2, options));
    CHECK(nvrtcGetCUBINSize(program, &bytes));
    std::vector<char> code(bytes);
    CHECK(nvrtcGetCUBIN(program, code.data()));
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr out;
    float host[64];
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, code.data()));
    CHECK(cuModuleGetFunction(&function, module, "sums"));
    CHECK(cuMemAlloc(&out, sizeof host));
    void *arguments[] = {&out};
    CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cuMemcpyDtoH(host, out, sizeof host));
    printf("%g %g\n", host[0], host[63]);
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 7;
}
"""


def build(folder: Path, *flags: str, source: str = PROGRAM) -> Path:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc")
    (folder / "app.cu").write_text(source)
    target = flags if any("gencode" in flag for flag in flags) else ("-gencode", "arch=compute_90a,code=compute_90a", *flags)
    subprocess.run([nvcc, "-lineinfo", *target, "-o", "app", "app.cu"], cwd=folder, check=True)
    return folder / "app"


def libraries(*wanted: find.Library) -> list[str]:
    """Linker options for the driver, and for the NVRTC or nvJitLink that this process uses: a toolkit may lack them."""
    ctypes.CDLL("libcuda.so.1")
    driver = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcuda.so" in line)
    words = ["-Xlinker", driver, *(f"-I{folder}" for folder in find.include_dirs())]
    for library in wanted:
        path = Path(find.locate(library) or "")
        words += ["-Xlinker", str(path), "-Xlinker", f"-rpath={path.parent}"] if path.is_absolute() else ["-l" + library.stem]
        words += [f"-I{path.parent.parent / 'include'}"] if path.is_absolute() else []
    return words


def run(app: Path, *options: str) -> tuple[int, str, dict[str, Any]]:
    """Exit status, what the program printed, and the report. What a failed test shows is all there is to see on another machine."""
    output = app.parent / "report.json"
    command = [sys.executable, "-m", "consan", "run", "-o", str(output), *options, "./app"]
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=app.parent, capture_output=True, text=True, timeout=280, check=False)
    print(f"{time.perf_counter() - begun:.1f} s, status {done.returncode}\n{done.stdout}\n{done.stderr}")
    report = json.loads(output.read_text())
    brief = ("verdict", "incomplete", "kernels", "uninstrumented", "notes", "exit")
    print(json.dumps({name: report.get(name) for name in brief}, indent=1))
    return done.returncode, done.stdout.partition("\n")[0] + "\n", report


def launches(report: dict[str, Any]) -> dict[str, int]:
    """By kernel: those of its form that records global memory, too."""
    return dict(sum((Counter({kernel["name"]: kernel["launches"]}) for kernel in report["kernels"]), Counter()))


# A kernel whose function and variable are in another file: relocatable device code, and the same linked by the program itself.
PARTS = {
    "sums.cu": r"""
#include <cstdio>
#include <cuda_runtime.h>
extern __device__ float weight[4];
__device__ float value_of(const float *tile, int t);
extern "C" __global__ void sums(const float *x, float *out) {
    __shared__ float tile[256];
    int t = threadIdx.x;
    tile[t] = x[blockIdx.x * 256 + t];  // WRITE
#ifndef RACY
    __syncthreads();
#endif
    float sum = 0;
    for (int i = 0; i < 256; i++) sum += value_of(tile, (t + i) % 256);
    if (t == 0) out[blockIdx.x] = sum * weight[blockIdx.x];
}
#ifdef MAIN
#define CHECK(call) do { cudaError_t e = call; if (e) { printf("%s: %s\n", #call, cudaGetErrorString(e)); return 1; } } while (0)
int main() {
    float *x, *out, host[1024];
    for (float &f : host) f = 1;
    CHECK(cudaMalloc(&x, sizeof host));
    CHECK(cudaMalloc(&out, 16));
    CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    for (int i = 0; i < 10; i++) sums<<<4, 256>>>(x, out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, out, 16, cudaMemcpyDeviceToHost));
    printf("%g %g %g %g\n", host[0], host[1], host[2], host[3]);
    return 7;
}
#endif
""",
    "values.cu": r"""
__device__ float weight[4] = {1, 2, 3, 4};
__device__ float value_of(const float *tile, int t) {
    return tile[t];  // READ
}
""",
}
WEIGHTED = "256 512 768 1024\n"
LINKING = r"""
#include <cstdio>
#include <vector>
#include <cuda.h>
#define CHECK(call) do { int e = call; if (e) { printf("%s: %d\n", #call, e); return 1; } } while (0)
#ifdef NVJITLINK
#include <nvJitLink.h>
static int link(std::vector<char> &code) {
    nvJitLinkHandle linker;
    const char *options[] = {"-arch=sm_90a", "-lineinfo"};
    size_t bytes;
    CHECK(nvJitLinkCreate(&linker, 2, options));
    CHECK(nvJitLinkAddFile(linker, NVJITLINK_INPUT_FATBIN, "sums.fatbin"));
    CHECK(nvJitLinkAddFile(linker, NVJITLINK_INPUT_FATBIN, "values.fatbin"));
    CHECK(nvJitLinkComplete(linker));
    CHECK(nvJitLinkGetLinkedCubinSize(linker, &bytes));
    code.resize(bytes);
    CHECK(nvJitLinkGetLinkedCubin(linker, code.data()));
    CHECK(nvJitLinkDestroy(&linker));
    return 0;
}
#else
static int link(std::vector<char> &code) {
    CUlinkState linker;
    void *made;
    size_t bytes;
    CHECK(cuLinkCreate(0, nullptr, nullptr, &linker));
    CHECK(cuLinkAddFile(linker, CU_JIT_INPUT_FATBINARY, "sums.fatbin", 0, nullptr, nullptr));
    CHECK(cuLinkAddFile(linker, CU_JIT_INPUT_FATBINARY, "values.fatbin", 0, nullptr, nullptr));
    CHECK(cuLinkComplete(linker, &made, &bytes));
    code.assign((char *)made, (char *)made + bytes);
    CHECK(cuLinkDestroy(linker));
    return 0;
}
#endif
int main() {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr x, out;
    float host[1024];
    for (float &f : host) f = 1;
    std::vector<char> code;
#ifdef NVJITLINK
    CHECK(link(code));  // before the driver is initialised
#endif
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
#ifndef NVJITLINK
    CHECK(link(code));
#endif
    CHECK(cuModuleLoadData(&module, code.data()));
    CHECK(cuModuleGetFunction(&function, module, "sums"));
    CHECK(cuMemAlloc(&x, sizeof host));
    CHECK(cuMemAlloc(&out, 16));
    CHECK(cuMemcpyHtoD(x, host, sizeof host));
    void *arguments[] = {&x, &out};
    CHECK(cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cuMemcpyDtoH(host, out, 16));
    printf("%g %g %g %g\n", host[0], host[1], host[2], host[3]);
    return 7;
}
"""
SUMS, DOUBLED = "_Z4sumsPKfPf", "_Z7doubledPf"


NAMED_ROWS = r"""
#include <cuda_runtime.h>
__global__ void rows(float *out, const float *from, int stride) {
    int at = blockIdx.x * stride + threadIdx.x;
    out[at] = from[at] + blockIdx.x;
}
int main() {
    float *x, *out;
    cudaMalloc(&x, 1 << 18), cudaMalloc(&out, 1 << 18);
    rows<<<64, 256>>>(out, x, 240);
    return cudaDeviceSynchronize();
}
"""


def test_a_race_in_global_memory_names_the_array_and_the_element(tmp_path: Path) -> None:
    _, _, report = run(build(tmp_path, source=NAMED_ROWS))
    race = next(finding for finding in report["findings"] if finding["kind"] == "global-race")
    names = [access["name"] for access in race["accesses"] if access["role"] != "culprit"]
    assert all(re.fullmatch(r"element \d+ of argument 1 \(out\)", name) for name in names), names


@pytest.mark.parametrize("flags", [(), ("-cudart", "shared"), ("-DRESET",), ("-DGRAPH",)], ids=" ".join)
def test_clean(flags: tuple[str, ...], tmp_path: Path) -> None:
    app = build(tmp_path, *flags)
    plain = subprocess.run([app], capture_output=True, text=True, check=False)
    if plain.returncode == 127:
        pytest.skip(plain.stderr)  # no shared runtime beside this nvcc
    assert (plain.returncode, plain.stdout) == (7, RESULT), plain
    status, printed, report = run(app)
    assert (status, printed, report["verdict"], report["exit"]) == (7, RESULT, "clean", 7)
    assert not report["findings"]
    more = "-DGRAPH" in flags
    assert launches(report) == {SUMS: 15 if more else 10, DOUBLED: 2 if more else 1}
    assert not report["uninstrumented"]


def test_a_race_points_at_its_lines(tmp_path: Path) -> None:
    status, _, report = run(build(tmp_path, "-DRACY"))
    assert (status, report["verdict"], report["exit"]) == (66, "violations", 7)
    lines = PROGRAM.splitlines()
    assert found(report) >= {("app.cu", number) for number, line in enumerate(lines, 1) if line.endswith(("// WRITE", "// READ"))}
    assert {finding["kernel"] for finding in report["findings"]} == {SUMS}


@pytest.mark.parametrize(("flags", "verdict"), [((), "clean"), (("-DRACY",), "violations")], ids=["clean", "racy"])
def test_the_drivers_api_and_nvrtc(flags: tuple[str, ...], verdict: str, tmp_path: Path) -> None:
    app = build(tmp_path, *flags, *libraries(find.NVRTC), source=DRIVER_PROGRAM)
    status, printed, report = run(app)
    assert (status, report["verdict"], report["exit"]) == (66 if flags else 7, verdict, 7)
    assert launches(report) == {"sums": 1}
    assert flags or printed.startswith("63 0\n")
    assert {access["line"] for finding in report["findings"] for access in finding["accesses"]} <= {3, 5}


# The same program without a variable, so that it can be recorded.
STATELESS = "\n".join(line for line in PROGRAM.replace("sum + bias", "sum").splitlines() if "bias" not in line)


@pytest.mark.parametrize("flags", [(), ("-DGRAPH",), ("-DRACY",), ("-DRACY", "-DGRAPH")], ids=" ".join)
def test_recorded(flags: tuple[str, ...], tmp_path: Path) -> None:
    """Launches are recorded, those in a graph too."""
    app = build(tmp_path, *flags, source=STATELESS)
    plain = subprocess.run([app], capture_output=True, text=True, check=False)
    status, printed, report = run(app, "--engine", "record")
    racy, graph = "-DRACY" in flags, "-DGRAPH" in flags
    assert (status, report["verdict"], report["exit"]) == ((66, "violations", 7) if racy else (7, "clean", 7))
    assert racy or printed == plain.stdout
    ran = {(kernel["name"], kernel["engine"]): kernel["launches"] for kernel in report["kernels"] if kernel["launches"]}
    assert ran == {(SUMS, "record"): 15 if graph else 10, (DOUBLED, "record"): 2 if graph else 1}
    assert {finding["kernel"] for finding in report["findings"]} <= {SUMS}


@pytest.mark.parametrize("racy", [False, True], ids=["clean", "racy"])
def test_recorded_through_the_drivers_api(racy: bool, tmp_path: Path) -> None:
    app = build(tmp_path, *["-DRACY"] * racy, *libraries(find.NVRTC), source=DRIVER_PROGRAM)
    status, printed, report = run(app, "--engine", "record")
    assert (status, report["verdict"], report["exit"]) == ((66, "violations", 7) if racy else (7, "clean", 7))
    assert [(kernel["name"], kernel["engine"], kernel["launches"]) for kernel in report["kernels"]] == [("sums", "record", 1)]
    assert racy or printed.startswith("63 0\n")


def test_what_nvcc_assembles_in_the_run_is_known(tmp_path: Path) -> None:
    """Machine code that a child of the program makes, with ptxas, and another child loads."""
    (tmp_path / "make.sh").write_text("nvcc -arch=sm_90a -lineinfo -o app app.cu && exec ./app\n")
    (tmp_path / "app.cu").write_text(PROGRAM)
    output = tmp_path / "report.json"
    command = [sys.executable, "-m", "consan", "run", "-o", str(output), "/bin/sh", "make.sh"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    report = json.loads(output.read_text())
    assert (done.returncode, report["verdict"], report["findings"]) == (7, "clean", []), done.stdout + done.stderr
    assert launches(report) == {SUMS: 10, DOUBLED: 1}


def build_parts(folder: Path, *flags: str) -> None:
    for name, text in PARTS.items():
        (folder / name).write_text(text)
    done = subprocess.run(["nvcc", "-rdc=true", "-lineinfo", *flags, *PARTS], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def marked(*marks: str) -> set[tuple[str, int]]:
    lines = ((name, number, line) for name, text in PARTS.items() for number, line in enumerate(text.splitlines(), 1))
    return {(name, number) for name, number, line in lines if line.endswith(marks)}


VIRTUAL, BOTH = "arch=compute_90a,code=compute_90a", "arch=compute_90a,code=[compute_90a,sm_90a]"


@pytest.mark.parametrize("target", [VIRTUAL, BOTH], ids=["ptx", "with machine code"])
@pytest.mark.parametrize("racy", [False, True], ids=["clean", "racy"])
def test_relocatable_device_code(target: str, racy: bool, tmp_path: Path) -> None:
    build_parts(tmp_path, "-DMAIN", "-gencode", target, "-o", "app", *["-DRACY"] * racy)
    status, printed, report = run(tmp_path / "app")
    assert (status, report["verdict"], report["exit"]) == ((66, "violations", 7) if racy else (7, "clean", 7))
    assert launches(report) == {"sums": 10}
    assert racy or printed == WEIGHTED
    assert not racy or found(report) >= marked("// WRITE", "// READ")


@pytest.mark.parametrize("how", ["cuLink", "nvJitLink"])
@pytest.mark.parametrize("racy", [False, True], ids=["clean", "racy"])
def test_a_program_that_links_at_run_time(how: str, racy: bool, tmp_path: Path) -> None:
    build_parts(tmp_path, "-gencode", VIRTUAL, "-fatbin", *["-DRACY"] * racy)
    more = ["-DNVJITLINK", *libraries(find.NVJITLINK)] if how == "nvJitLink" else libraries()
    status, printed, report = run(build(tmp_path, *more, source=LINKING))
    assert (status, report["verdict"], report["exit"]) == ((66, "violations", 7) if racy else (7, "clean", 7))
    assert launches(report) == {"sums": 1}
    assert racy or printed == WEIGHTED
    assert not racy or found(report) >= marked("// WRITE", "// READ")


def test_ptx_beside_machine_code_is_taken(tmp_path: Path) -> None:
    flags = ["-DRACY", "-gencode", "arch=compute_80,code=[compute_80,sm_80]", "-gencode", "arch=compute_90a,code=[compute_90a,sm_90a]"]
    status, _, report = run(build(tmp_path, *flags))
    assert (status, report["verdict"], launches(report)[SUMS]) == (66, "violations", 10)


def test_machine_code_is_listed(tmp_path: Path) -> None:
    status, printed, report = run(build(tmp_path, "-gencode", "arch=compute_90a,code=sm_90a"))
    assert (status, printed, report["verdict"]) == (7, RESULT, "incomplete")
    assert {kernel["name"]: kernel["launches"] for kernel in report["uninstrumented"]} == {SUMS: 10, DOUBLED: 1}


def test_what_loading_costs(tmp_path: Path) -> None:
    """Measured and printed, as in tests/bench: the second run finds everything in the cache."""
    app = build(tmp_path)
    begun = time.perf_counter()
    subprocess.run([app], capture_output=True, check=False)
    plain = time.perf_counter() - begun
    first = run(app)
    begun = time.perf_counter()
    second = run(app)
    print(f"plain {plain:.2f} s, under consan {time.perf_counter() - begun:.2f} s with all in the cache")
    assert [(status, printed, report["verdict"]) for status, printed, report in (first, second)] == [(7, RESULT, "clean")] * 2


ROWS = r"""
#include <cstdio>
#include <cuda_runtime.h>
extern "C" __global__ void rows(float *out, int stride) { out[blockIdx.x * stride + threadIdx.x] = blockIdx.x + 1; }
extern "C" __global__ void histogram(int *bins, const int *keys) {
    int key = keys[blockIdx.x * 64 + threadIdx.x];
#ifdef RACY
    bins[key] += 1;
#else
    atomicAdd(bins + key, 1);
#endif
}
int main() {
    float *out;
    int *keys;
    if (cudaMalloc(&out, 1 << 20) || cudaMalloc(&keys, 1 << 20) || cudaMemset(keys, 0, 1 << 20)) return 1;
    for (int i = 0; i < 20; i++) rows<<<64, 256>>>(out, STRIDE);
    histogram<<<2, 64>>>((int *)out, keys);
    printf("%d\n", (int)cudaDeviceSynchronize());
    return 7;
}
"""


def test_global_memory_between_ctas(tmp_path: Path) -> None:
    """All launches of `rows` have a proof, and that of `histogram` is looked at."""
    status, _, report = run(build(tmp_path, "-DSTRIDE=256", source=ROWS))
    assert (status, report["verdict"], launches(report)) == (7, "clean", {"rows": 20, "histogram": 1}), report
    assert "global-memory" in report["checked"], report["not_checked"]


def test_races_between_ctas(tmp_path: Path) -> None:
    _, _, report = run(build(tmp_path, "-DSTRIDE=240", "-DRACY", source=ROWS))
    assert report["verdict"] == "violations"
    assert {(finding["kind"], finding["kernel"]) for finding in report["findings"]} >= {
        ("global-race", "rows"),
        ("global-race", "histogram"),
    }
