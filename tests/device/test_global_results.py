"""What a tensor store writes, as the runtime finds it from the map and the coordinates, against what it does write.

A kernel stores a box of ones into a tensor of zeros and, with its source waited for only, reads every element: each element that
the store covers is counted once in the finding, and no other.
"""

from __future__ import annotations

import numpy as np
import pytest

import consan
from consan.reports.model import Report

KERNEL = r"""
struct alignas(64) TensorMap { unsigned long long words[16]; };
extern "C" __global__ void k(const __grid_constant__ TensorMap map, int elements, float* sink) {
    __shared__ alignas(128) TYPE tile[4096];
    unsigned at = (unsigned)__cvta_generic_to_shared(tile);
    const TYPE* all = (const TYPE*)map.words[0];
    for (int i = threadIdx.x; i < 4096; i += 64) tile[i] = 1;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("OP [%0, {COORDINATES}], [%1];" ::"l"(&map), "r"(at) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < elements; i += 64) sum += all[i];
    sink[threadIdx.x] = sum;
}
"""
OPS = {
    "store": "cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group",
    "add": "cp.reduce.async.bulk.tensor.{}d.global.shared::cta.add.tile.bulk_group",
}
CASES = [
    ((64,), (16,), (8,), (1,), "u32", "store"),
    ((64,), (32,), (48,), (1,), "u32", "store"),
    ((12, 32), (8, 16), (2, 8), (1, 1), "u32", "store"),
    ((12, 32), (8, 16), (10, 24), (1, 1), "u32", "store"),
    ((12, 32), (9, 8), (1, 4), (4, 1), "u32", "store"),
    ((20, 48), (8, 32), (16, 32), (1, 1), "u8", "store"),
    ((6, 5, 16), (3, 2, 8), (2, 4, 8), (1, 1, 1), "u32", "store"),
    ((6, 5, 16), (5, 4, 8), (0, 1, 0), (2, 3, 1), "u32", "store"),
    ((3, 4, 2, 5, 8), (2, 2, 2, 3, 4), (2, 3, 0, 1, 4), (1, 1, 1, 1, 1), "u32", "store"),
    ((12, 32), (8, 16), (10, 24), (1, 1), "u32", "add"),
    ((3, 4, 2, 5, 8), (2, 2, 2, 3, 4), (2, 3, 0, 1, 4), (1, 1, 1, 1, 1), "u32", "add"),
]


QUICK = (3, 7, 9)


def _case(number: int) -> object:
    return pytest.param(*CASES[number], marks=() if number in QUICK else pytest.mark.slow)


@pytest.mark.parametrize(("shape", "box", "start", "steps", "dtype", "operation"), [_case(number) for number in range(len(CASES))])
def test_the_elements_that_a_tensor_store_covers(
    shape: tuple[int, ...], box: tuple[int, ...], start: tuple[int, ...], steps: tuple[int, ...], dtype: str, operation: str, device: str
) -> None:
    tensor = np.zeros(shape, {"u32": np.uint32, "u8": np.uint8}[dtype])
    report = run(tensor, tensor, box, start, steps, operation, device)
    covered = int(np.count_nonzero(tensor))
    assert covered
    (finding,) = report.findings
    assert (finding.kind, finding.hazard, finding.count) == ("missing-wait", "RAW", covered)


def test_strides_in_any_order(device: str) -> None:
    tensor = np.zeros((4, 3, 8), np.uint32)
    report = run(tensor, tensor.transpose(1, 0, 2), (2, 3, 4), (1, 1, 4), (1, 1, 1), "store", device)
    assert [finding.count for finding in report.findings] == [np.count_nonzero(tensor)]


def run(
    tensor: np.ndarray, view: np.ndarray, box: tuple[int, ...], start: tuple[int, ...], steps: tuple[int, ...], operation: str, device: str
) -> Report:
    """Store a box through a map of the view, and read the tensor."""
    source = KERNEL.replace("TYPE", "unsigned" if tensor.itemsize == 4 else "unsigned char")
    source = source.replace("OP", OPS[operation].format(view.ndim)).replace(
        "COORDINATES", ", ".join(str(place) for place in reversed(start))
    )
    kernel = consan.Kernel(source, entry="k", arch="sm_90a")
    arguments = [consan.TensorMap(view, box=box, element_strides=steps), np.int32(tensor.size), np.zeros(64, np.float32)]
    return consan.launch(kernel, grid=(1,), block=(64,), args=arguments, device=device)
