"""The report in one line a finding."""

from __future__ import annotations

import re
from dataclasses import replace

import report_samples as samples

from consan.reports import render
from consan.reports.model import CLEAN

LINE = re.compile(r"\S+:\d+(:\d+)?: (error|warning|note): .*\[[a-z0-9-]+\]")


def test_one_line_a_finding_and_the_verdict() -> None:
    report = samples.violations()
    *findings, last = render(report, "short").splitlines()
    assert len(findings) == len(report.shown(notes=False))
    assert all(LINE.fullmatch(line) for line in findings)
    assert last == f"consan: verdict: violations (2 errors, {report.count('warning')} warning, {report.count('note')} note)"
    assert len(render(report, "short", notes=True).splitlines()) == len(report.active) + 1


def test_the_place_is_that_of_the_later_access() -> None:
    race = samples.RACE
    later = race.pair[-1]
    line = render(replace(samples.violations(), findings=(race,)), "short").splitlines()[0]
    assert line.startswith(f"{later.file}:{later.line}:{later.column}: error: {race.hazard} in ")
    in_ptx = replace(race, accesses=tuple(replace(access, file="", line=0, ptx_line=7) for access in race.accesses))
    assert render(replace(samples.violations(), findings=(in_ptx,)), "short").startswith("PTX:7: error: ")


def test_a_run_without_findings_and_one_that_is_incomplete() -> None:
    assert render(samples.clean(), "short") == f"consan: verdict: {CLEAN} (nothing found)\n"
    partly = replace(samples.clean(), verdict="incomplete", incomplete=("a kernel was not checked",))
    assert render(partly, "short").splitlines()[0] == "consan: incomplete: a kernel was not checked"


def test_control_characters_stay_visible() -> None:
    report = replace(samples.violations(), findings=(replace(samples.RACE, message="a\n\x1b[2Jb"),))
    assert len(render(report, "short").splitlines()) == 2
    assert "\x1b" not in render(report, "short")
