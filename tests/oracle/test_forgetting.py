"""The oracle forgets accesses that come before everything that is still to come: that must not change a verdict."""

from __future__ import annotations

import numpy as np
import oracle_pairs
import pytest
from draws import examples
from oracle_programs import Batch
from oracle_run import oracle
from oracle_strategies import batches
from oracle_verdict import Verdict

import consan


def _verdict(batch: Batch) -> Verdict:
    arrays = [np.arange(4096, dtype=np.int32), np.zeros(4096, np.int32)]
    return oracle(consan.Kernel(batch.ptx), batch.grid, batch.threads, arrays)


# Programs of a strategy, eight in a kernel: those of clusters take ten times as long.
FEW, MANY = [("synchronous", 1), ("asynchronous", 1)], [("synchronous", 3), ("asynchronous", 3), ("matrix", 2), ("clusters", 1)]


@pytest.mark.parametrize(("strategy", "kernels"), [*FEW, *(pytest.param(*each, marks=pytest.mark.slow) for each in MANY)])
def test_verdict_is_the_same(strategy: str, kernels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for batch in examples(batches(strategy), 3, kernels):
        verdicts = []
        for rows in (1 << 30, 0):
            monkeypatch.setattr(oracle_pairs, "_PRUNE", rows)
            verdicts.append(_verdict(batch))
        kept, forgotten = verdicts
        assert {pair: found.kinds for pair, found in forgotten.pairs.items()} == {pair: found.kinds for pair, found in kept.pairs.items()}
        assert forgotten.uninitialized == kept.uninitialized
