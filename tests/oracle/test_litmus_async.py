"""Litmus tests of mbarriers, proxies and asynchronous operations (litmus_async.py).

The axioms, the oracle and the product agree with the verdicts that were derived by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from axioms_async import PROXY as LACKS_FENCE, RACE as ANY_RACE, Judge
from litmus_async import PROXY, RACE, SCOPE, TESTS, WAIT, AsyncLitmus
from oracle_run import oracle
from sampled import one_in

import consan

_CLASS = {RACE: ANY_RACE, "global-race": ANY_RACE, WAIT: ANY_RACE, SCOPE: ANY_RACE, PROXY: LACKS_FENCE}


def _name(test: AsyncLitmus) -> str:
    return test.name


def _variable(names: dict[int, str], lines: list[int]) -> str:
    """The variable that two operations have in common; global memory first, since a name in shared memory is one of each CTA."""
    words = [{word.split("@")[0] for word in names[line].split()[1:]} for line in lines]
    return max(set.intersection(*words) - {"m", "n"})


def _reported(test: AsyncLitmus, device: str, policy: str = "default") -> dict[str, str]:
    text, names = test.ptx()
    how: dict[str, Any] = {"device": device, "engine": "record", "global_memory": "on", "policy": policy}
    report = consan.launch(consan.Kernel(text), 2, test.block, [np.zeros(16, np.int32)], **how)
    assert report.verdict != "incomplete"
    return {_variable(names, [one.ptx_line for one in each.pair]): each.kind for each in report.findings if each.severity != "note"}


@pytest.mark.parametrize("test", TESTS, ids=_name)
def test_axioms(test: AsyncLitmus) -> None:
    assert Judge(test, isa=False).verdict() == {name: _CLASS[kind] for name, kind in test.races.items()}
    assert Judge(test, isa=True).verdict() == {name: _CLASS[kind] for name, kind in (test.races | test.isa).items()}


@pytest.mark.parametrize("test", TESTS, ids=_name)
def test_oracle(test: AsyncLitmus) -> None:
    text, names = test.ptx()
    verdict = oracle(consan.Kernel(text), 2, test.block, [np.zeros(16, np.int32)], global_memory=True)
    found = {_variable(names, list(pair) * 2): {_CLASS[kind] for kind in one.kinds} for pair, one in verdict.pairs.items()}
    assert found == {name: {_CLASS[kind]} for name, kind in test.races.items()}


@pytest.mark.parametrize("test", one_in(6, TESTS, _name))
def test_product(test: AsyncLitmus) -> None:
    assert _reported(test, "cpu") == test.races
    assert _reported(test, "cpu", "isa") == test.races | test.isa


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("test", TESTS, ids=_name)
def test_product_on_a_gpu(test: AsyncLitmus) -> None:
    assert _reported(test, "gpu") == test.races
