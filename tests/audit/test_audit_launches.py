"""Kernels without a host's code: launches of a launch file."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from consan.audit import rows
from consan.audit.rows import FileResult, KernelRow
from consan.audit.runner import AuditRequest, AuditServer
from consan.toolchain.nvrtc import compile_ptx

SOURCE = """
__global__ void rev(float *p) {
  __shared__ float tile[64];
  tile[threadIdx.x] = p[threadIdx.x];
  BARRIER
  p[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void scale(float *p, int n, float by) {
  if (threadIdx.x < n) p[threadIdx.x] *= by;
}
template <typename T> __global__ void shifted(T *p) {
  __shared__ T tile[64];
  tile[threadIdx.x] = p[threadIdx.x];
  BARRIER
  p[threadIdx.x] = tile[(threadIdx.x + 1) % 64];
}
"""
LAUNCH = '[[launch]]\nkernel = "{}"\ngrid = 1\nblock = 64\narguments = [{}]\n'
ARRAYS = '[arrays]\na = "f32[64]=random"\n'
REV, SCALE = LAUNCH.format("rev", '"a"'), LAUNCH.format("scale", '"a", "i32=64", "f32=2"')


@functools.lru_cache(maxsize=1)
def _server() -> AuditServer:
    return AuditServer()


@pytest.fixture(scope="module", autouse=True)
def server_ends() -> Iterator[None]:
    yield
    _server().close()
    _server.cache_clear()


def _source(*, right: bool) -> str:
    return SOURCE.replace("BARRIER", "__syncthreads();" if right else "")


def _result(name: str, text: str, launches: str | None) -> FileResult:
    return _server().result(AuditRequest(name, text, launches=launches))


def _by_kernel(result: FileResult) -> dict[str, KernelRow]:
    return {row.kernel: row for row in result.rows}


@pytest.mark.parametrize("right", [True, False])
def test_ptx_is_launched_as_its_launch_file_says(right: bool) -> None:
    ptx = compile_ptx(_source(right=right), name="k.cu").ptx
    found = _by_kernel(_result("k.ptx", ptx, ARRAYS + REV + SCALE + SCALE))
    assert {name: (row.verdict, row.launches, row.launch) for name, row in found.items()} == {
        "rev": ("clean" if right else "violations", 1, "1 x 64"),
        "scale": ("clean", 2, "1 x 64"),
    }
    assert [(each.kind, each.lines, each.file.endswith("k.cu")) for each in found["rev"].findings] == (
        [] if right else [("data-race", (4, 6), True)]
    )


def test_a_kernel_without_a_launch_is_not_reached() -> None:
    found = _result("k.ptx", compile_ptx(_source(right=True), name="k.cu").ptx, ARRAYS + REV)
    assert [(row.kernel, row.verdict) for row in found.rows] == [("rev", "clean"), ("scale", rows.NOT_REACHED)]


@pytest.mark.parametrize("right", [True, False])
def test_an_instance_of_a_template_is_launched_by_its_name(right: bool) -> None:
    launch = LAUNCH.format("shifted<int>", '"i32[64]=arange"')
    row = _by_kernel(_result("k.cu", _source(right=right), launch))["shifted<int>"]
    assert (row.verdict, [each.lines for each in row.findings]) == (("clean", []) if right else ("violations", [(13, 15)]))


@pytest.mark.parametrize(
    ("launches", "why"),
    [
        ("[[launch]]", "the launch file: launch 1: expected grid"),
        (LAUNCH.format("rev", ""), "launch 1: _Z3revPf takes 1 argument (8 bytes), 0 given"),
        (LAUNCH.format("rev", '"f32=1"'), "launch 1: argument 1 'f32=1': is a float"),
        (LAUNCH.format("rve", '"f32[64]=zeros"'), "launch 1: k.ptx has no kernel called 'rve'"),
    ],
)
def test_a_launch_that_does_not_fit_is_said(launches: str, why: str) -> None:
    result = _result("k.ptx", compile_ptx(_source(right=True), name="k.cu").ptx, launches)
    assert result.verdict == rows.NOT_REACHED
    assert any(row.note.startswith(why) for row in result.rows), result.rows
