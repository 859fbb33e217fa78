"""Errors at smaller sizes are looked for at those that a program has itself, with few CTAs."""

from __future__ import annotations

import pytest
from audit_server import server

from consan.audit import rows
from consan.audit.confirming import CONFIRMED, NOT_IN_TIME, NOT_THERE
from consan.audit.rows import KernelRow
from consan.audit.runner import AuditRequest

PROGRAM = """
#define LIMIT 4000
__global__ void rev(float *p, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = p[i];
  if (%s) __syncthreads();
  p[i] = tile[255 - threadIdx.x];
}
int main() {
  int n = 1 << 26;
  float *p;
  cudaMalloc(&p, sizeof(float) * n);
  %s
  rev<<<n / 256, 256>>>(p, n);
  cudaDeviceSynchronize();
}
"""
SMALL = PROGRAM.replace("1 << 26", "4096")


def _row(text: str, timeout: float = 60.0) -> KernelRow:
    (row,) = server().result(AuditRequest("k.cu", text, timeout=timeout)).rows
    return row


def test_an_error_is_confirmed_in_a_few_of_many_ctas() -> None:
    """262,144 CTAs would take minutes, and their logs have no room."""
    row = _row(PROGRAM % ("false", ""))
    assert (row.verdict, row.launch, row.findings[0].confirmed) == ("violations", "1 x 256", CONFIRMED)


def test_what_the_published_size_does_not_show_is_a_warning() -> None:
    row = _row(SMALL % ("n > LIMIT", ""))
    assert (row.verdict, {each.severity for each in row.findings}) == (rows.SMALLER, {"warning"})
    assert {each.confirmed for each in row.findings} == {NOT_THERE}


@pytest.mark.slow
def test_what_is_not_confirmed_in_time_stays_an_error() -> None:
    row = _row(SMALL % ("n > LIMIT", "if (n > LIMIT) for (volatile int i = 0;; i = i + 1) {}"), timeout=5.5)
    assert (row.verdict, {each.confirmed for each in row.findings}) == ("violations", {NOT_IN_TIME})


def test_without_smaller_sizes_there_is_nothing_to_confirm() -> None:
    row = _row(PROGRAM.replace("1 << 26", "256") % ("false", ""))
    assert (row.verdict, row.findings[0].confirmed) == ("violations", CONFIRMED)


@pytest.mark.slow
def test_an_incomplete_launch_is_made_again_with_few_ctas() -> None:
    """In the time of a launch not all of its CTAs run. Nothing makes them fewer."""
    kernel = (
        "__global__ void k(float *p) { float v = threadIdx.x; for (int i = 0; i < 999; ++i) v = v * 1.5f + 1; if (v == 0.25f) *p = v; }\n"
    )
    main = "int main() { float *p; cudaMalloc(&p, 4); k<<<1 << 14, 256>>>(p); }"
    row = server().result(AuditRequest("k.cu", kernel + main, timeout=60.0, launch_timeout=1.0)).rows[0]
    assert (row.verdict, row.launches) == ("incomplete", 2)
    assert "were not to start" in row.note


def test_a_block_stays_as_it_is_where_a_grid_has_become_empty() -> None:
    """The first argument would be the block's threads. With fewer than 1,024 a word is read that no warp has stored."""
    kernels = (
        "__global__ void warm(int *p) { p[blockIdx.x * blockDim.x + threadIdx.x] = 1; }\n"
        "__global__ void sum(int *p) { __shared__ int of[32]; int i = blockIdx.x * blockDim.x + threadIdx.x;"
        " if (threadIdx.x % 32 == 0) of[threadIdx.x / 32] = p[i]; __syncthreads(); if (threadIdx.x < 32) p[i] = of[threadIdx.x]; }\n"
    )
    main = (
        "int main(int argc, char **argv) { int size = 1 << 20, blocksize = 1024; if (argc > 1) blocksize = atoi(argv[1]);"
        " int *p, n = size / blocksize; cudaMalloc(&p, 4 * size); warm<<<n / 2, blocksize>>>(p); if (cudaGetLastError()) return 1;"
        " sum<<<n, blocksize>>>(p); }"
    )
    found = server().result(AuditRequest("k.cu", kernels + main, timeout=60.0)).rows
    assert {(row.kernel, row.verdict, row.launch.partition(" x ")[2]) for row in found} == {
        (each, "clean", "1024") for each in ("warm", "sum")
    }


def test_sizes_are_larger_where_a_grid_has_become_empty() -> None:
    kernels = "".join(f"__global__ void {name}(float *p) {{ p[blockIdx.x * blockDim.x + threadIdx.x] = 1; }}\n" for name in "ab")
    main = "int main() { int n = 1 << 20; float *p; cudaMalloc(&p, 4 * n); a<<<n / 256, 256>>>(p); b<<<n / 256 / 8, 256>>>(p); }"
    found = {row.kernel: row.verdict for row in server().result(AuditRequest("k.cu", kernels + main, timeout=60.0)).rows}
    assert found == {"a": "clean", "b": "clean"}
