"""Strong accesses by multimem: a launch that executes none is checked, and one that does may be ordered by what no log has.

The virtual machine has no multimem addresses: such an instruction is left out of the text that it runs, and its event stays.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from compact_support import Work

import consan
from consan.checker.judging.checked import Checked
from consan.checker.judging.collected import LaunchedKernel
from consan.checker.judging.recorder import check
from consan.instrument.record import record
from consan.instrument.record.families.global_memory import Mode

SOURCE = """
extern "C" __global__ void k(int* out, int least) {
    if (blockIdx.x > least) asm volatile("MULTIMEM" :: "l"(out) : "memory");
    out[threadIdx.x] = blockIdx.x;
}"""
STRONG = "multimem.red.release.sys.global.add.u32 [%0], 1;"
WEAK = "{.reg .u32 x; multimem.ld_reduce.global.add.u32 x, [%0];}"


def _checked(instruction: str, least: int, *, calls: bool = False) -> Checked:
    source = SOURCE.replace("MULTIMEM", instruction)
    if calls:
        source = source.replace("asm volatile", "signal(out);").replace('("' + instruction + '" :: "l"(out) : "memory");', "")
        source = f'__device__ __noinline__ void signal(int* out) {{ asm volatile("{instruction}" :: "l"(out) : "memory"); }}' + source
    args = [np.zeros(32, np.int32), np.int32(least)]
    work = Work(consan.Kernel(source, "k", arch="sm_90").ptx, "k", (4, 1, 1), (32, 1, 1), args, global_races=True)
    whole = record(work.ptx, global_races=True)
    assert whole.kernels[0].mode is Mode.ALONE
    recorded = replace(whole, ptx=re.sub(r"multimem\.[^;]*;", "", whole.ptx))
    return check(work.run(recorded), recorded, LaunchedKernel(0, 0, work.grid, work.block, (1, 1, 1)), {})


@pytest.mark.parametrize("calls", [False, True], ids=["in the kernel", "in a function"])
@pytest.mark.parametrize("instruction", [STRONG, WEAK], ids=["strong", "weak"])
def test_an_instruction_that_is_not_executed_hides_nothing(instruction: str, calls: bool) -> None:
    checked = _checked(instruction, 4, calls=calls)
    assert (len(checked.found), checked.global_races) == (1, ())


@pytest.mark.parametrize("calls", [False, True], ids=["in the kernel", "in a function"])
def test_order_by_an_instruction_that_is_executed_is_not_known(calls: bool) -> None:
    checked = _checked(STRONG, 2, calls=calls)
    assert (len(checked.found), checked.global_races) == (0, ("threads may have synchronised by multimem instructions",))


def test_a_weak_access_orders_nothing() -> None:
    """It is itself compared: the stores of two CTAs race, and the weak access of a third races with them, in either order."""
    checked = _checked(WEAK, 2)
    assert (len(checked.found), checked.global_races) == (3, ())
