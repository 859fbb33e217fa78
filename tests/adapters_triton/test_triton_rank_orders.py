"""Programs that tests/gpu runs on two GPUs, on the virtual machine: with torch itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs_of_two_ranks import FAULTS, ORDERS, flags, order
from test_triton_ranks import of_two

STATUS = {"clean": 0, "violations": 66, "incomplete": 67}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_all_reduce_with_flags(tmp_path: Path, fault: str) -> None:
    report = of_two(tmp_path, flags(fault))
    assert STATUS[report["verdict"]] == FAULTS[fault][1], report


@pytest.mark.parametrize("name", ORDERS)
def test_what_orders_the_launches_of_two_ranks(tmp_path: Path, name: str) -> None:
    report = of_two(tmp_path, order(name))
    assert report["verdict"] == ("clean" if ORDERS[name][1] else "violations"), report
