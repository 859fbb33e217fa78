"""Faults planted in what the words of a finding follow from, each with the test of another file that then fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import test_culprits
from planted import plant_in_module

from consan.instrument.between.flow import Flow
from consan.reports import culprits
from consan.reports.culprits.finders import constant_parity
from consan.reports.decoding import branches, decode

ORDER = next(row for row in test_culprits.ORDERS if row[0] == "exchange_in_functions")
BARRIER = test_culprits.test_a_barrier_behind_a_wait_is_outside_of_the_branch_of_the_wait


def _calls_do_not_stand_for_accesses(patch: pytest.MonkeyPatch) -> None:
    at = Flow.at
    patch.setattr(Flow, "at", lambda flow, site: at(flow, site) if site.function == flow.function.name else set())


def _no_constant_parity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(culprits, "RULES", tuple(rule for rule in culprits.RULES if rule.find is not constant_parity))


def _names_the_parity(_: Path) -> None:
    (report,) = test_culprits._racy("mbarrier_parity_constant")
    assert any("asks for parity 0 in each round" in finding.message for finding in report.findings)


def _no_branch_of_the_wait(patch: pytest.MonkeyPatch) -> None:
    plant_in_module(patch, branches, "if behind_wait and wait is None:", "if False:", [decode])


def _no_wait(patch: pytest.MonkeyPatch) -> None:
    plant_in_module(patch, branches, '"waited-no-barrier"', '"no situation"', [decode])


FAULTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[Path], Any]]] = {
    "calls stand for accesses": (
        _calls_do_not_stand_for_accesses,
        lambda _: test_culprits.test_a_race_reads_the_same_in_each_schedule(*ORDER),
    ),
    "a constant parity": (_no_constant_parity, _names_the_parity),
    "the branch of a wait": (_no_branch_of_the_wait, lambda folder: BARRIER(folder, "", "before stages.cu:7")),
    "the wait stands for the operation": (
        _no_wait,
        lambda folder: BARRIER(folder, "if (t == 0) ", "after the branch that contains stages.cu:6"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_lets_a_test_fail(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plant, test = FAULTS[fault]
    test(tmp_path)
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        test(tmp_path)
