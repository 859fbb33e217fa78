"""Two implementations of causality order, clocks and sets of operations, agree on litmus tests and on random programs.

D19 takes no order from two fence.sc that nothing observes between; litmus tests ask about every Fence-SC order that the axioms allow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draws import examples
from litmus import LITMUS, Litmus
from oracle_axioms import Execution, execution
from oracle_grid import check_globals
from oracle_run import recorded
from oracle_strategies import batches
from oracle_trace import Trace

import consan

ORDINARY = [test for test in LITMUS if test.rule != "R-GM13"]  # within the memory model
# What the run has read leaves one order of two fences only: the other is that of another run.
ONE_ORDER = {"sb_weak", "sb_one_relaxed_word", "lb_weak"}
BARRED = [test for test in ORDINARY if "bar" in "".join(test.threads.values())]


def _trace(kernel: Any, grid: int, block: int, number: int = 0) -> Trace:
    args = [np.zeros(4096, np.int32) for _ in kernel.function.params]
    trace, stats = recorded(kernel, grid, block, args, seed=number, global_memory=True)
    assert not stats.faults
    return trace


def _pairs(trace: Trace) -> set[frozenset[int]]:
    return set(check_globals(trace, policy="isa").pairs)


def _litmus(test: Litmus, number: int = 0) -> tuple[Trace, Execution]:
    trace = _trace(consan.Kernel(test.ptx()[0]), test.grid, test.block, number)
    return trace, execution(trace)


@pytest.mark.parametrize("test", [test for test in ORDINARY if test not in BARRED], ids=lambda test: test.name)
def test_litmus(test: Litmus) -> None:
    trace, found = _litmus(test)
    found.close()
    assert found.races() == _pairs(trace)


@pytest.mark.parametrize("test", [test for test in ORDINARY if test not in BARRED], ids=lambda test: test.name)
def test_every_order_of_fences(test: Litmus) -> None:
    trace, found = _litmus(test)
    possible, pairs = found.possible(), _pairs(trace)
    assert possible <= pairs
    assert possible == pairs or test.name in ONE_ORDER


def _agree(programs: int, number: int) -> int:
    races = 0
    for batch in examples(batches("global", 1), number, programs):
        if "ld.global.nc" in batch.ptx:
            continue
        trace = _trace(consan.Kernel(batch.ptx), batch.grid, batch.threads)
        found = execution(trace)
        found.close()
        races += len(pairs := _pairs(trace))
        assert found.races() == pairs, batch
    return races


def test_random_programs() -> None:
    assert _agree(12, 1) > 10


@pytest.mark.slow
@pytest.mark.parametrize("number", range(2, 12))
def test_many_random_programs(number: int) -> None:
    assert _agree(40, number) > 60
