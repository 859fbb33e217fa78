"""Findings name the last wait at an mbarrier and the arrival that ended its phase: each with a fault planted."""

from __future__ import annotations

from pathlib import Path

import pytest
import twin_file
from planted import break_checker, plant, quick

import consan
from consan.checker.compiled import replay
from consan.reports.decoding import misuse
from consan.reports.waiting import deadlocks

KERNELS = Path(__file__).parents[1] / "kernels"
ISSUERS, WAITS, OPERATIONS = "issuers.hpp", "last_waits.hpp", "operations.hpp"
# A racy twin, what a finding of it says, and the fault: the file of the checker, what is replaced by what.
SAID = {
    "the reader's mbarrier": (
        "blackwell/stale_parity_of_two_commits",
        "wait for phase 0 of the mbarrier full",
        (ISSUERS, "waits.waits(thread, object)", "false"),
    ),
    "the mbarrier that nobody waits for": (
        "blackwell/commit_nobody_waits_for",
        "a successful wait for phase 0 of the mbarrier full",
        (ISSUERS, "cells && idle ? idle : best", "best"),
    ),
    "what ended the phase": (
        "blackwell/arrived_at_issue_in_structure",
        "comes when the tcgen05.mma is issued",
        (WAITS, "!late", "true"),
    ),
    "what let a refill begin": (
        "blackwell/operand_freed_between_products",
        "has let the bulk load",
        (OPERATIONS, "found.reason == REFILLED && operand", "false"),
    ),
    "a use is no wait": (
        "blackwell/loads_awaited_by_use_too_late",
        "put tcgen05.wait::ld.sync.aligned",
        (ISSUERS, "own.pipe == BY_WAIT_LD", "false"),
    ),
}
for _, _, fault in SAID.values():
    quick(*fault)


def _said(name: str) -> str:
    spec = twin_file.read(KERNELS / f"{name}.cu")
    args = spec.parameters(spec.fresh_args())
    report = consan.launch(twin_file.kernel(spec.path, True), spec.grid, spec.block, args, smem=spec.smem, device="cpu", engine="record")
    return "\n".join(f"{each.message}\n{each.missing}\n{each.fix}" for each in report.findings)


@pytest.mark.parametrize("case", SAID)
def test_what_is_said(case: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name, words, fault = SAID[case]
    assert words in _said(name)
    break_checker(monkeypatch, tmp_path, (replay,), *fault)
    assert words not in _said(name)


def test_threads_at_the_last_barrier_hide_no_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    name, words = "twins/deadlock_bytes_before_end", "make expect_tx the bytes that the copies of one phase write"
    assert words in _said(name)
    plant(monkeypatch, deadlocks, "if relations is None or not lines:", "if True:")
    assert words not in _said(name)


def test_a_ring_without_names_is_to_be_freed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    name, words = "blackwell/ring_not_freed_in_structure", 'let them arrive behind that on an "empty" mbarrier'
    assert words in _said(name)
    plant(monkeypatch, misuse, "    if not name:\n        at =", "    if name:\n        at =")
    assert words not in _said(name)


def test_mbarriers_of_one_structure_are_told_apart() -> None:
    """The wait before the product is for another mbarrier of the structure than the one of the copy: no name in the text says so."""
    said = _said("blackwell/other_wait_in_structure")
    assert "waits for another mbarrier, bytes" in said
    assert "comes only after" not in said
