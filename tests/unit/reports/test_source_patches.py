"""Verified fixes as lines of the CUDA source: what can be written so, and where."""

from __future__ import annotations

import pytest

from consan.reports.model import FixStep, VerifiedFix
from consan.reports.source_patches import between, patched

SOURCE = """__global__ void k() {
    if (threadIdx.x == 0)
        a[0] = 1;
    __syncthreads();  // all
    wait<1>();  // 1 in flight
    b = a[0]; c = 2;
    if (b) __syncthreads();
    asm volatile("cp.async.wait_group %0;" :: "n"(2));
    if (b) return;
    return;
}
"""


def _step(action: str, instruction: str, where: str = "at", line: int = 0, own: int = 0, spelling: str = "") -> FixStep:
    return FixStep(action, instruction, where, "", "k.cu", line or own, 0, spelling, own)


def _changed(*steps: FixStep) -> list[str]:
    """The lines that are new, with their numbers."""
    text = patched(SOURCE, [VerifiedFix(steps)], "k.cu")
    before = SOURCE.splitlines()
    return [f"{number}: {line}" for number, line in enumerate(text.splitlines(), start=1) if [line] != before[number - 1 : number]]


WRITTEN = {
    "a new line": (_step("add", "bar.sync 0", "before", 5, spelling="__syncthreads()"), "5:     __syncthreads();"),
    "of PTX": (_step("add", "fence.proxy.async", "after", 8), '9:     asm volatile("fence.proxy.async;" ::: "memory");'),
    "a number": (_step("alter", "cp.async.wait_group 0", own=5), "5:     wait<0>();  // 1 in flight"),
    "an operand of asm": (_step("alter", "cp.async.wait_group 0", own=8), '8:     asm volatile("cp.async.wait_group %0;" :: "n"(0));'),
    "a sum": (_step("alter", "mbarrier.init with a count that differs by +31", own=5), "5:     wait<32>();  // 1 in flight"),
    "the other parity": (_step("alter", "mbarrier.try_wait with the other parity", own=5), "5:     wait<0>();  // 1 in flight"),
    "a line is moved": (_step("move", "bar.sync", "after", 5, 4), "5:     __syncthreads();  // all"),
    "with its condition": (_step("move", "bar.sync", "after", 4, 7), "5:     if (b) __syncthreads();"),
    "a line is left out": (_step("leave-out", "bar.sync", own=4), "4:     wait<1>();  // 1 in flight"),
}
NOT_WRITTEN = {
    "at an mbarrier": _step("add", "mbarrier.try_wait at [full]", "after", 4),
    "between a condition and its statement": _step("add", "bar.sync 0", "before", 3),
    "two numbers": _step("alter", "cp.async.wait_group 0", own=6),
    "a form without a number": _step("alter", "mbarrier.arrive.cta.b64", own=5),
    "below zero": _step("alter", "mbarrier.init with a count that differs by -2", own=5),
    "several statements": _step("leave-out", "bar.sync", own=6),
    "the body of a condition": _step("leave-out", "st.shared", own=3),
    "the end of the kernel": _step("leave-out", "bar.sync", own=10),
    "a condition": _step("leave-out", "condition", own=4),
    "in another file": _step("move", "bar.sync", "before", 5, 0),
    "behind the end": _step("add", "bar.sync 0", "after", 80),
}


@pytest.mark.parametrize(("step", "line"), WRITTEN.values(), ids=WRITTEN)
def test_a_step_is_written_as_lines(step: FixStep, line: str) -> None:
    assert line in _changed(step)


@pytest.mark.parametrize("step", NOT_WRITTEN.values(), ids=NOT_WRITTEN)
def test_a_step_that_no_lines_are(step: FixStep) -> None:
    assert patched(SOURCE, [VerifiedFix((step,))], "k.cu") == ""


def test_a_step_in_another_file_is_not_written() -> None:
    step = _step("add", "bar.sync 0", "before", 5)
    assert patched(SOURCE, [VerifiedFix((step,))], "other.cu") == ""


def test_equal_steps_are_written_once() -> None:
    step = _step("add", "bar.sync 0", "before", 5)
    assert patched(SOURCE, [VerifiedFix((step,)), VerifiedFix((step,))], "k.cu").count("bar.sync 0") == 1


def test_places_between_two_lines_outside_of_nested_blocks_come_early() -> None:
    lines = "void k() {\n if (a) {\n  s = 1;\n }\n // }}}\n b = s;\n}\n"
    assert between(lines, [6, 3]) == [3, 4, 5, 2, 6]  # behind the write, behind its branch, before the read, around both
    assert between(lines, [6, 6]) == [5, 6]
    assert between(lines, []) == between(lines, [0, 0]) == []
