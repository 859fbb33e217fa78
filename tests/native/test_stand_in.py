"""Native programs on a machine without a GPU: those of the driver, and those of the CUDA runtime, shared or in a copy of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from reversed_tile import HEADER, REVERSE

from consan.libcuda.build import DRIVER
from consan.native.program import NativeProgram
from consan.native.run import run_native
from consan.reports.model import Report
from consan.session.planning.options import SessionOptions

HERE = Path(__file__).parent
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")


def ran(program: Path, *words: str) -> tuple[int, Report]:
    status, report, _ = run_native(NativeProgram(str(program), (program.name, *words)), SessionOptions(device="cpu"))
    return status, report


@pytest.fixture
def of_the_driver(tmp_path: Path) -> Path:
    """A program that links libcuda.so.1."""
    (tmp_path / "libcuda.so").write_bytes(DRIVER.data())
    words = ["cc", str(HERE / "driver_program.c"), "-o", "program", "-L.", "-lcuda", "-lpthread"]
    subprocess.run(words, cwd=tmp_path, check=True, env={**os.environ, "LC_ALL": "C"})
    return tmp_path / "program"


@pytest.mark.parametrize("racy", [False, True])
def test_a_program_of_the_driver_and_its_child(of_the_driver: Path, racy: bool, capfd: pytest.CaptureFixture[str]) -> None:
    ptx = of_the_driver.with_name("k.ptx")
    ptx.write_text((HEADER + REVERSE).replace("BARRIER", "" if racy else "bar.sync 0;"))
    status, report = ran(of_the_driver, str(ptx))
    assert status == int(racy and capfd.readouterr().out.startswith("line"))
    assert report.verdict == ("violations" if racy else "clean")
    assert {each.kind for each in report.findings} == ({"data-race"} if racy else set())
    assert racy or [each.launches for each in report.kernels] == [2]
    assert racy or "2 processes included" in report.notes


HUNG = """
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuModuleLoad(void **, const char *);
int cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
static void *leave(void *status) {
    sleep(1);
    _exit((int)(intptr_t)status);
}
int main(int count, char **words) {
    void *context, *module, *kernel;
    pthread_t thread;
    pthread_create(&thread, NULL, leave, (void *)3);
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuModuleLoad(&module, words[1])) return 1;
    if (cuModuleGetFunction(&kernel, module, "hangs")) return 2;
    return cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}
"""
HANGS = """
.visible .entry hangs()
{
    .reg .b32 %r<2>;
    mov.u32 %r1, 0;
$L1:
    add.u32 %r1, %r1, 1;
    bra $L1;
}
"""


def test_a_kernel_that_hangs_when_its_program_ends_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so").write_bytes(DRIVER.data())
    (tmp_path / "hung.c").write_text(HUNG)
    (tmp_path / "hangs.ptx").write_text(f".version 8.0\n.target sm_90a\n.address_size 64\n{HANGS}")
    words = ["cc", "hung.c", "-o", "program", "-L.", "-lcuda", "-lpthread"]
    subprocess.run(words, cwd=tmp_path, check=True, env={**os.environ, "LC_ALL": "C"})
    status, report = ran(tmp_path / "program", str(tmp_path / "hangs.ptx"))
    assert (status, report.verdict) == (3, "incomplete")
    assert any("hangs did not run to its end: interrupted" in why for why in report.incomplete), report.incomplete


def built(folder: Path, *options: str, source: str = "runtime_program.cu") -> Path:
    """A program of the CUDA runtime, as nvcc builds it."""
    words = ["nvcc", "-arch=compute_90", "-lineinfo", *options, "-o", "program", str(HERE / source)]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "program"


@needs_nvcc
def test_a_program_that_holds_a_copy_of_the_runtime(tmp_path: Path) -> None:
    status, report = ran(built(tmp_path))
    assert (status, report.verdict) == (0, "clean")
    assert [each.launches for each in report.kernels] == [1], "a launch of 4,096 threads is refused"


@needs_nvcc
def test_a_missing_barrier_is_found_at_the_line_of_the_program(tmp_path: Path) -> None:
    _, report = ran(built(tmp_path, "-cudart", "shared", "-DRACY"))
    text = (HERE / "runtime_program.cu").read_text().splitlines()
    reader = next(number for number, line in enumerate(text, 1) if "// reader" in line)
    (found,) = report.findings
    assert (found.kind, "__syncthreads()" in found.fix) == ("data-race", True)
    assert reader in {access.line for access in found.accesses}


@needs_nvcc
def test_without_a_symbol_table_a_copy_of_the_runtime_is_not_known(tmp_path: Path) -> None:
    status, report = ran(built(tmp_path, "-Xlinker", "-s"))
    assert (status, report.verdict) == (1, "incomplete")
    assert any("do not strip it" in note for note in report.notes)


@needs_nvcc
def test_a_call_of_a_copy_that_is_not_served_says_its_name(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("int main() { void *place = 0; return cudaIpcCloseMemHandle(place) == cudaErrorNotSupported ? 3 : 4; }")
    subprocess.run(["nvcc", "-o", "program", "k.cu"], cwd=tmp_path, check=True)
    status, report = ran(tmp_path / "program")
    assert (status, report.verdict) == (3, "incomplete")
    assert "cudaIpcCloseMemHandle failed: consan's stand-in driver does not serve it" in report.notes


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("code", ["compute_90", "sm_90"])
def test_device_code_that_is_linked_from_several_files(tmp_path: Path, code: str) -> None:
    """`nvcc -rdc=true`: the program's wrapper names the fat binaries of the files, and one of the library of devices."""
    (tmp_path / "main.cu").write_text(
        f'#include "{HERE}/part_sums.cu"\nint main() {{ float *x, *y; cudaMalloc(&x, 1024); cudaMalloc(&y, 16); cudaMemset(x, 0, 1024);'
        "sums<<<1, 256, 1024>>>(x, y); return cudaDeviceSynchronize(); }"
    )
    words = ["nvcc", f"-arch={code}", "-rdc=true", "-lineinfo", "-o", "program", "main.cu", str(HERE / "part_values.cu")]
    for racy in (False, True):
        subprocess.run([*words, *(["-DRACY"] if racy else [])], cwd=tmp_path, check=True)
        status, report = ran(tmp_path / "program")
        found = {(each.kind, each.kernel) for each in report.findings}
        assert (status, report.verdict, found) == ((0, "violations", {("data-race", "sums")}) if racy else (0, "clean", set())), (
            report.notes
        )


@needs_nvcc
@pytest.mark.slow  # as below
def test_a_graph_whose_kernels_set_a_condition_and_its_twin(tmp_path: Path) -> None:
    program = built(tmp_path, source="conditional_program.cu")
    status, report = ran(program)
    assert (status, report.verdict) == (0, "clean"), report.notes
    assert [each.launches for each in report.kernels] == [3, 3]
    _, report = ran(program, "racy")
    text = (HERE / "conditional_program.cu").read_text().splitlines()
    line = next(number for number, line in enumerate(text, 1) if "// second" in line)
    assert {each.kind for each in report.findings} == {"global-race"}
    assert line in {access.line for each in report.findings for access in each.accesses}


@needs_nvcc
@pytest.mark.slow  # tests/unit/libcuda has a quick one, and no compiler
@pytest.mark.parametrize("runtime", ["static", "shared"])
def test_a_captured_graph_and_its_twin(tmp_path: Path, runtime: str) -> None:
    program = built(tmp_path, "-cudart", runtime, source="graph_program.cu")
    status, report = ran(program)
    assert (status, report.verdict) == (0, "clean"), report.notes
    assert sorted(each.launches for each in report.kernels) == [2, 4]
    _, report = ran(program, "racy")
    text = (HERE / "graph_program.cu").read_text().splitlines()
    line = next(number for number, line in enumerate(text, 1) if "// second" in line)
    assert {each.kind for each in report.findings} == {"global-race"}
    assert all(line in {access.line for access in each.accesses} for each in report.findings), report.findings
