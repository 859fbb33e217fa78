"""A ring that tensor copies fill and products of a warpgroup read is proven, and none of its faulty forms is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("z3", reason="the solver is in the extra `prove`")

from planted import plant

from consan.__main__ import main
from consan.prove.phases import model

FILE = Path(__file__).with_name("hopper_ring.cu")
# Each one leaves out a wait, waits for another phase, or reads another stage.
FAULTS = ("NO_EMPTY", "WRONG_PHASE", "OFF_BY_ONE", "NO_WAIT", "LATE_WAIT", "FREED_EARLY", "EXPECTED_LATE")


# One thread of the warpgroup frees a stage for all of it: a product is one operation of its four warps.
ONE = ("FREES=t == 97", "COUNT=1")
# Two warpgroups read each stage.
BOTH = ("READERS=256", "FREES=t % 128 == 97", "COUNT=2")
FIRST = ("READERS=256", *ONE)


def _answer(capsys: pytest.CaptureFixture[str], *words: str, block: int = 160) -> dict[str, object]:
    main(["prove", str(FILE), "--block", str(block), "--arch", "sm_90a", "--format", "json", *words])
    page: dict[str, object] = json.loads(capsys.readouterr().out)
    return page


def test_a_ring_of_products_is_proven(capsys: pytest.CaptureFixture[str]) -> None:
    found = _answer(capsys)
    assert found["answer"] == "proven"
    assert any("box of the tensor copy" in each for each in found["assumptions"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("fault", [FAULTS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in FAULTS[1:])])
def test_a_faulty_ring_of_products_is_not_proven(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _answer(capsys, "--define", fault)["answer"] != "proven"


def _defined(*macros: str) -> list[str]:
    return [word for each in macros for word in ("--define", each)]


@pytest.mark.parametrize(("macros", "block"), [(ONE, 160), pytest.param(BOTH, 288, marks=pytest.mark.slow)])
def test_a_ring_that_one_thread_of_each_warpgroup_frees_is_proven(
    macros: tuple[str, ...], block: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _answer(capsys, *_defined(*macros), block=block)["answer"] == "proven"


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["NO_WAIT", "LATE_WAIT", "FREED_EARLY"])
def test_a_ring_that_one_thread_frees_too_early_is_not_proven(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _answer(capsys, *_defined(*ONE, fault))["answer"] != "proven"


@pytest.mark.slow
def test_a_ring_that_one_of_two_warpgroups_frees_is_not_proven(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert _answer(capsys, *_defined(*FIRST), block=288)["answer"] != "proven"
    plant(monkeypatch, model, "own < _WARPGROUP * (each + 1)", "own >= 0")
    assert _answer(capsys, *_defined(*FIRST), block=288)["answer"] == "proven"
