"""A mutation for each outcome of each decision, and for each reason: a checker that decides otherwise reports something else of a kernel.

What orders, whom a scope includes and why something is a finding have names in the checker (decisions.hpp), so moving text does not disarm
these faults.
"""

from __future__ import annotations

from typing import Any

import pytest
from planted import Plant, decisions, enumerators, outcomes
from planted_decisions import DECIDED, NO_KERNEL, REASONS, REASONS_ELSEWHERE
from record_support import KERNELS, twin_file

import consan
from consan.checker.compiled import replay
from consan.checker.judging import grid

FOLDERS = ("twins", "clean", "global", "global/clean", "blackwell")
ONE_OF_ITS_KIND = ("OVERLAPPING_COPIES", "DIVERGENT", "EXIT")  # the report says the same without the reason
QUICK = (("Edge::GLOBAL_RELEASE", True), ("Inclusion::GLOBAL_FLAG", True))


def _said(name: str, racy: bool) -> Any:
    path = next(path for folder in FOLDERS if (path := KERNELS / folder / f"{name}.cu").is_file())
    spec = twin_file.read(path)
    options = {"smem": spec.smem, "device": "cpu", "global_memory": "on", "policy": spec.policy}
    report = consan.launch(twin_file.kernel(path, racy), spec.grid, spec.block, spec.parameters(spec.fresh_args()), **options)
    return report.verdict, sorted((one.kind, one.severity, one.situation, one.count) for one in report.findings), report.incomplete


def test_each_decision_has_a_kernel_or_a_reason() -> None:
    assert DECIDED.keys() | NO_KERNEL.keys() == outcomes()
    assert not DECIDED.keys() & NO_KERNEL.keys()


@pytest.mark.parametrize("enumeration", ["Edge", "Inclusion"])
def test_each_name_is_one_of_a_decision(enumeration: str) -> None:
    assert {f"{enumeration}::{name}" for name in enumerators(enumeration)} == {name for name in decisions() if name.startswith(enumeration)}


def test_each_reason_has_a_kernel_or_another_test() -> None:
    assert enumerators("Reason").keys() - {"NO_REASON"} == REASONS.keys() | REASONS_ELSEWHERE.keys()
    assert not REASONS.keys() & REASONS_ELSEWHERE.keys()


@pytest.mark.parametrize(
    "way", [pytest.param(way, id=f"{way[0]}-{way[1]}", marks=[] if way in QUICK else pytest.mark.slow) for way in DECIDED]
)
def test_a_decision_that_is_wrong(way: tuple[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    right = _said(*DECIDED[way])
    Plant(monkeypatch, (replay, grid)).decides(*way)
    assert _said(*DECIDED[way]) != right


@pytest.mark.slow
@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_that_is_wrong(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = _said(*REASONS[reason])
    plant = Plant(monkeypatch, (replay, grid))
    plant.loses(reason)
    assert _said(*REASONS[reason]) != right
    plant.replaces(reason)
    assert (_said(*REASONS[reason]) != right) == (reason not in ONE_OF_ITS_KIND)
