"""A kernel that is not recorded leaves the others of its file alone, and a function counts for the kernels that can reach it."""

from __future__ import annotations

import numpy as np
import pytest

import consan
from consan.instrument.record import record

PAUSES = "while (out[1] == 77) __nanosleep(20);"
SIBLINGS = {
    "a poll by plain loads": ("", PAUSES, "sibling"),
    "a function that no kernel calls": (f'extern "C" __device__ __noinline__ void unused(float* out) {{ {PAUSES} }}', "", ""),
}
SOURCE = """
HELPER
extern "C" __global__ void sibling(float* out) { BODY }
extern "C" __global__ void kernel(float* out) {
    out[blockIdx.x * STRIDE + threadIdx.x] = blockIdx.x;
}
"""


@pytest.mark.parametrize("name", SIBLINGS)
@pytest.mark.parametrize(("stride", "kinds"), [(16, {"global-race"}), (32, set())], ids=["racy", "repaired"])
def test_what_else_is_in_the_file_does_not_matter(name: str, stride: int, kinds: set[str]) -> None:
    helper, body, refused = SIBLINGS[name]
    source = SOURCE.replace("HELPER", helper).replace("BODY", body).replace("STRIDE", str(stride))
    kernel = consan.Kernel(source, "kernel", arch="sm_90a")
    assert list(record(kernel.ptx, global_races=True).refused) == [refused] * bool(refused)
    report = consan.launch(kernel, 2, 32, [np.zeros(64, np.float32)], device="cpu")
    own = next(each for each in report.kernels if each.name == "kernel")
    assert (own.engine, {each.kind for each in report.findings}) == ("record", kinds)
    assert not own.global_gaps


def test_a_kernel_is_refused_by_name_where_the_module_is_not() -> None:
    source = SOURCE.replace("HELPER", "").replace("BODY", PAUSES).replace("STRIDE", "32")
    kernel = consan.Kernel(source, "sibling", arch="sm_90a")
    report = consan.launch(kernel, 2, 32, [np.zeros(64, np.float32)], device="cpu")
    assert "polls memory in a loop" in " ".join(gap for each in report.kernels for gap in each.global_gaps)
