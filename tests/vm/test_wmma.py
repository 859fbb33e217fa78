"""wmma on the virtual machine: loads, products and stores of each shape, type and layout, and what they access."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import consan

SOURCE = """
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda;
extern "C" __global__ void kernel(const SOURCE_TYPE* a, const SOURCE_TYPE* b, const SUM* c, SUM* d) {
    wmma::fragment<wmma::matrix_a, M, N, K, TYPE, wmma::A_LAYOUT_major> left;
    wmma::fragment<wmma::matrix_b, M, N, K, TYPE, wmma::B_LAYOUT_major> right;
    wmma::fragment<wmma::accumulator, M, N, K, SUM> sum;
    wmma::load_matrix_sync(left, (const MEMORY*)a, A_STRIDE);
    wmma::load_matrix_sync(right, (const MEMORY*)b, B_STRIDE);
    wmma::load_matrix_sync(sum, c, D_STRIDE, wmma::mem_D_LAYOUT_major);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(d, sum, D_STRIDE, wmma::mem_D_LAYOUT_major);
}"""
WIDE = 48  # elements from one line to the next
TYPES: dict[str, tuple[str, Any, str, Any]] = {
    "half": ("half", np.float16, "float", np.float32),
    "half to half": ("half", np.float16, "half", np.float16),
    "signed char": ("signed char", np.int8, "int", np.int32),
    "unsigned char": ("unsigned char", np.uint8, "int", np.int32),
    "wmma::precision::tf32": ("float", np.float32, "float", np.float32),
    "double": ("double", np.float64, "double", np.float64),
}
SHAPES = [(16, 16, 16), (8, 32, 16), (32, 8, 16)]
CASES = [
    *((kind, shape) for kind in ("half", "half to half", "signed char", "unsigned char") for shape in SHAPES),
    ("wmma::precision::tf32", (16, 16, 8)), ("double", (8, 8, 4)),
]  # fmt: skip


def _stored(matrix: npt.NDArray[Any], layout: str, between: int = 77) -> npt.NDArray[Any]:
    """A matrix in memory, with a distance between its lines."""
    lines = matrix if layout == "row" else matrix.T
    wide = np.full((len(lines), WIDE), between, matrix.dtype)
    wide[:, : lines.shape[1]] = lines
    return wide


def _launch(kind: str, shape: tuple[int, int, int], layouts: tuple[str, str, str], block: int = 32) -> tuple[Any, Any, Any]:
    """The report, what the kernel stored, and what it should have."""
    memory, dtype, total, sum_dtype = TYPES[kind]
    (m, n, k), random = shape, np.random.default_rng(1)
    a, b, c = (random.integers(0, 5, size) for size in ((m, k), (k, n), (m, n)))
    words = {
        "SOURCE_TYPE": memory, "MEMORY": memory, "SUM": total, "TYPE": kind.removesuffix(" to half"), "A_LAYOUT": layouts[0],
        "B_LAYOUT": layouts[1], "D_LAYOUT": layouts[2], "A_STRIDE": WIDE, "B_STRIDE": WIDE, "D_STRIDE": WIDE,
    }  # fmt: skip
    source = SOURCE
    for word, value in words.items():
        source = source.replace(word, str(value))
    for word, value in zip("MNK", shape, strict=True):
        source = source.replace(f" {word},", f" {value},")
    given = _stored(a.astype(dtype), layouts[0]), _stored(b.astype(dtype), layouts[1]), _stored(c.astype(sum_dtype), layouts[2])
    d = np.zeros_like(given[2])
    report = consan.launch(consan.Kernel(source, "kernel", arch="sm_80"), 1, block, [*given, d], device="cpu")
    return report, d, _stored((a @ b + c).astype(sum_dtype), layouts[2], 0)


@pytest.mark.parametrize("layouts", [("row", "col", "row"), ("col", "row", "col")], ids="-".join)
@pytest.mark.parametrize(("kind", "shape"), CASES)
def test_a_product(kind: str, shape: tuple[int, int, int], layouts: tuple[str, str, str]) -> None:
    report, found, expected = _launch(kind, shape, layouts)
    np.testing.assert_array_equal(found, expected)
    assert (report.verdict, report.incomplete) == ("clean", ())
    (m, n, k), (_, dtype, _, sums) = shape, TYPES[kind]
    shares = [max(1, rows * columns * np.dtype(kind).itemsize // 16) for rows, columns, kind in ((m, k, dtype), (k, n, dtype))]
    least = sum(shares) + 2 * m * n * np.dtype(sums).itemsize // 16
    assert least <= report.kernels[0].global_accesses <= 2 * least  # lines of 8 bytes have shares of 8


def test_two_warps_that_store_the_same_matrix_race() -> None:
    report, _, _ = _launch("half", (16, 16, 16), ("row", "col", "row"), block=64)
    assert {finding.kind for finding in report.findings} == {"data-race"}


def test_called_hooks_do_not_follow_it_and_say_so() -> None:
    source = """
    #include <mma.h>
    using namespace nvcuda;
    extern "C" __global__ void kernel(float* out) {
        __shared__ __align__(32) float sums[256];
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
        wmma::fill_fragment(sum, 1.f);
        wmma::store_matrix_sync(sums, sum, 16, wmma::mem_row_major);
        __syncwarp();
        out[threadIdx.x] = sums[threadIdx.x];
    }"""
    launch = (consan.Kernel(source, "kernel", arch="sm_80"), 1, 32, [np.zeros(32, np.float32)])
    inline, recorded = (consan.launch(*launch, device="cpu", engine=engine) for engine in ("inline", "record"))
    assert (inline.findings, inline.verdict, recorded.verdict) == ((), "incomplete", "clean")


SMALL = """
#include <mma.h>
using namespace nvcuda;
using namespace nvcuda::wmma::experimental;
extern "C" __global__ void kernel(const int* a, const int* b, const int* c, int* d) {
    wmma::fragment<wmma::matrix_a, 8, 8, K, precision::TYPE, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, K, precision::TYPE, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, K, int> sum;
    wmma::load_matrix_sync(left, a, 2 * K);
    wmma::load_matrix_sync(right, b, 2 * K);
    wmma::load_matrix_sync(sum, c, 8, wmma::mem_row_major);
    wmma::MULTIPLY;
    wmma::store_matrix_sync(d, sum, 8, wmma::mem_row_major);
}"""
BITS = {"xor": "bmmaBitOpXOR", "and": "bmmaBitOpAND"}


def _lines(values: npt.NDArray[Any], bits: int) -> npt.NDArray[Any]:
    """Lines of elements below a byte, the lowest bits first; each line is as long again, with something else."""
    both = np.concatenate([values, np.ones_like(values)], axis=1)
    planes = (both[..., None] >> np.arange(bits) & 1).astype(np.uint8)
    return np.packbits(planes.reshape(len(values), -1), axis=1, bitorder="little").view(np.int32)


@pytest.mark.parametrize("kind", ["s4", "u4", "xor", "and"])
def test_a_product_of_elements_below_a_byte(kind: str) -> None:
    random, bits, k = np.random.default_rng(2), (1 if kind in BITS else 4), (128 if kind in BITS else 32)
    call = f"bmma_sync(sum, left, right, sum, {BITS[kind]}, bmmaAccumulateOpPOPC)" if kind in BITS else "mma_sync(sum, left, right, sum)"
    source = SMALL.replace("TYPE", "b1" if kind in BITS else kind).replace("K", str(k)).replace("MULTIPLY", call)
    a, b, c = (
        random.integers(0, 1 << bits, (8, k)),
        random.integers(0, 1 << bits, (8, k)),
        random.integers(-99, 99, (8, 8)).astype(np.int32),
    )
    d = np.zeros((8, 8), np.int32)
    report = consan.launch(consan.Kernel(source, "kernel", arch="sm_80"), 1, 32, [_lines(a, bits), _lines(b, bits), c, d], device="cpu")
    if kind in BITS:
        both = (a[:, None] ^ b[None]) if kind == "xor" else (a[:, None] & b[None])
        expected = both.sum(2) + c
    else:
        left, right = ((x ^ 8) - 8 if kind == "s4" else x for x in (a, b))
        expected = left @ right.T + c
    np.testing.assert_array_equal(d, expected)
    assert (report.verdict, report.incomplete) == ("clean", ())
