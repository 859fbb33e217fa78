"""A ring that tensor copies fill and products of a warpgroup read is proven, and none of its faulty forms is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("z3", reason="the solver is in the extra `prove`")

from consan.__main__ import main

FILE = Path(__file__).with_name("hopper_ring.cu")
# Each one leaves out a wait, waits for another phase, or reads another stage.
FAULTS = ("NO_EMPTY", "WRONG_PHASE", "OFF_BY_ONE", "NO_WAIT", "LATE_WAIT", "FREED_EARLY", "EXPECTED_LATE")


def _answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    main(["prove", str(FILE), "--block", "160", "--arch", "sm_90a", "--format", "json", *words])
    page: dict[str, object] = json.loads(capsys.readouterr().out)
    return page


def test_a_ring_of_products_is_proven(capsys: pytest.CaptureFixture[str]) -> None:
    found = _answer(capsys)
    assert found["answer"] == "proven"
    assert any("box of the tensor copy" in each for each in found["assumptions"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("fault", [FAULTS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in FAULTS[1:])])
def test_a_faulty_ring_of_products_is_not_proven(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _answer(capsys, "--define", fault)["answer"] != "proven"
