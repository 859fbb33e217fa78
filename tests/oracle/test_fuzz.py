"""Random kernels: consan and the oracle must agree on every pair of sites, in both directions.

CI runs the same few hundred programs each time; `-m slow` runs ten thousand. A failure is shrunk by Hypothesis; what it leaves belongs
into regressions/.
"""

from __future__ import annotations

import numpy as np
import oracle_programs
import pytest
from hypothesis import HealthCheck, given, settings
from oracle_compare import compare
from oracle_programs import THREADS, Batch, batches
from oracle_run import oracle

import consan

_QUICK = settings(max_examples=12, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
_SLOW = settings(max_examples=420, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def _agree(batch: Batch, seed: int = 0) -> None:
    kernel, ctas = consan.Kernel(batch.ptx), len(batch.programs)
    source, result = np.arange(4096, dtype=np.int32), np.zeros(4096, np.int32)
    verdict = oracle(kernel, ctas, THREADS, [source, result], seed=seed)
    report = consan.launch(kernel, ctas, THREADS, [source, result], device="cpu", seed=seed)
    assert compare(verdict, report).wrong == []


@_QUICK
@given(batches(oracle_programs.synchronous()))
def test_synchronous_programs(batch: Batch) -> None:
    _agree(batch)


@_QUICK
@given(batches(oracle_programs.with_copies()))
def test_programs_with_copies(batch: Batch) -> None:
    _agree(batch)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("strategy", ["synchronous", "with_copies"])
def test_many_programs(strategy: str) -> None:
    _SLOW(given(batches(getattr(oracle_programs, strategy)()))(_agree))()
