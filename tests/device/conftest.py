"""The device that a test runs on: `cpu` always, `gpu` where there is one (marked, and skipped visibly elsewhere)."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from device_support import Bench

MOST_CLOSED = 16  # benches that are not collected yet: each has up to 50 MB, and refers to itself


@pytest.fixture(autouse=True)
def _close_benches() -> Iterator[None]:
    yield
    while Bench.opened:
        Bench.opened.pop().close()
        Bench.closed += 1
    if Bench.closed >= MOST_CLOSED:
        gc.collect()
        Bench.closed = 0


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """`cpu`, then `gpu`."""
    if request.param == "gpu":
        request.getfixturevalue("gpu")
    return str(request.param)
