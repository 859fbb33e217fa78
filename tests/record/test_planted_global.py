"""Faults planted in each rule about global memory change what is found in a kernel of tests/kernels/global."""

from __future__ import annotations

from typing import Any

import pytest
from planted import break_checker, quick
from planted_global_rules import RULES
from record_support import KERNELS, found, twin_file

import consan
from consan.checker.compiled import build, replay
from consan.checker.judging import grid

QUICK = ("G1: same bytes", "G11: scope of reductions")
for rule in QUICK:
    quick(*RULES[rule][:3])


def _spec(name: str) -> Any:
    folders = ("global", "global/clean", "twins", "clean")
    return twin_file.read(next(each for folder in folders if (each := KERNELS / folder / f"{name.partition('@')[0]}.cu").is_file()))


def _launch(name: str, racy: bool) -> Any:
    spec, seed = _spec(name), int(name.partition("@")[2] or 0)
    options = {"smem": spec.smem, "device": "cpu", "global_memory": "on", "policy": spec.policy, "seed": seed}
    return consan.launch(twin_file.kernel(spec.path, racy), spec.grid, spec.block, spec.parameters(spec.fresh_args()), **options)


def _said(report: Any) -> Any:
    """The verdict, the findings, and what each says is missing."""
    return report.verdict, found(report), sorted((one.kind, one.situation) for one in report.findings)


def test_each_fault_changes_text_that_is_there() -> None:
    sources = build.sources()
    assert [rule for rule, (file, old, *_) in RULES.items() if sources[file].count(old) != 1] == []


@pytest.mark.parametrize("rule", [pytest.param(rule, marks=[] if rule in QUICK else pytest.mark.slow) for rule in RULES])
def test_a_fault_in_a_rule(rule: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    file, old, new, name, racy = RULES[rule]
    right = _launch(name, racy)
    errors = any(each.severity == "error" for each in _spec(name).expected)
    assert right.verdict == ("violations" if racy and errors else "clean")
    break_checker(monkeypatch, tmp_path, (replay, grid), file, old, new)
    assert _said(_launch(name, racy)) != _said(right)
