"""Findings of an earlier run do not count: what is the same finding, what is new, and what is gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import report_samples as samples

from consan._errors import UsageError
from consan.reports.model import Finding, Report
from consan.reports.source.sources import of_lines
from consan.reports.verdict.baseline import REASON, known
from consan.reports.verdict.conclusion import with_gaps
from consan.reports.verdict.suppression import suppress
from consan.suppressions import baseline, unused

FILE = "dir/k.cu"
LINES = {4: "  a[t] = t;", 5: "  out[t] = a[63 - t];"}


def _report(finding: Finding, lines: dict[int, str]) -> Report:
    return with_gaps(replace(samples.clean(), sources={FILE: lines}), (), findings=(finding,))


def _race(first: int = 4, **changes: object) -> Finding:
    accesses = tuple(replace(access, file=FILE, line=first + number) for number, access in enumerate(samples.RACE.accesses[:2]))
    return replace(samples.RACE, accesses=accesses, **changes)  # type: ignore[arg-type]


def _again(finding: Finding, lines: dict[int, str]) -> Report:
    report = _report(finding, lines)
    return suppress(report, known(_report(_race(), LINES), "base.json"), of_lines(report.sources))


def test_a_known_finding_does_not_count_though_its_lines_move() -> None:
    assert _report(_race(), LINES).verdict == "violations"
    for first in (4, 40):
        report = _again(_race(first), {first: LINES[4], first + 1: LINES[5]})
        assert (report.verdict, report.active) == ("clean", ())
        assert [finding.suppressed.by for finding in report.findings if finding.suppressed] == ["base.json, finding 1"]


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"hazard": "WAR"}, LINES),
        ({"kind": "missing-wait"}, LINES),
        ({"kernel": "other"}, LINES),
        ({}, {4: "  b[t] = t;", 5: LINES[5]}),
    ],
)
def test_another_finding_is_new(changes: dict[str, str], lines: dict[int, str]) -> None:
    assert _again(_race(**changes), lines).verdict == "violations"


def test_what_is_gone_is_said() -> None:
    rules = known(_report(_race(), LINES), "base.json")
    assert unused(rules, _again(_race(), LINES)) == []
    (line,) = unused(rules, samples.clean())
    assert line == f"base.json, finding 1: this data-race in kernel {samples.RACE.kernel} is not found any more"


def test_a_baseline_of_a_run_with_a_baseline_has_both() -> None:
    assert [rule.reason for rule in known(_again(_race(), LINES), "next.json")] == [REASON]


def test_a_file_that_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("no report")
    with pytest.raises(UsageError, match=r"k\.cu is "):
        baseline(str(tmp_path / "k.cu"))
    assert baseline(None) == ()
