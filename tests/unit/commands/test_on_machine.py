"""What the virtual machine adds to the report of `consan check` on a GPU. The GPU is made up: the report says that one made the launch."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from consan import options
from consan.__main__ import build_parser
from consan.commands.check import RequestedLaunch
from consan.commands.parts import on_machine
from consan.reports.model import Report

KERNELS = Path(__file__).parents[2] / "kernels"
WAITS = KERNELS / "schedules" / "counter_reset.cu", "--grid", "2", "--block", "32", "--arg", "u32[2]=zeros", "--arg", "u32[64]=zeros"
REMOVED = KERNELS / "unoptimised" / "weight_of_zero.cu", "--grid", "1", "--block", "64", "--arg", "i32[64]=zeros"


def checked(*words: object, racy: bool, explore: float = 2.0, unoptimized: str = "off") -> tuple[Report, Report]:
    """The report as a GPU would give it, and what the machine makes of it."""
    args = build_parser("check").parse_args(
        ["check", *map(str, words), "--device", "cpu", "--arch", "sm_80", *(["-DRACY"] if racy else [])]
    )
    args.argv = []
    values = {each.name: each.default for each in options.ALL} | {"explore": 0.0, "unoptimized": "off", "rules": ()}
    given = argparse.Namespace(**(vars(args) | values | {"device": "cpu"}))
    requested = RequestedLaunch(given)
    report = replace(requested.run(given), device="a GPU")
    return report, on_machine.with_machine(
        requested, argparse.Namespace(**(vars(given) | {"explore": explore, "unoptimized": unoptimized})), report
    )


def test_the_machine_finds_what_another_schedule_shows() -> None:
    before, report = checked(*WAITS, racy=True)
    assert (before.verdict, report.verdict) == ("clean", "violations")
    assert {(each.kind, each.seed is None) for each in report.findings if each.severity == "error"} == {("deadlock", False)}
    assert report.device == "a GPU"
    assert report.kernels[0].launches == 1


def test_a_repaired_kernel_stays_clean_and_the_report_says_what_was_explored() -> None:
    _, report = checked(*WAITS, racy=False, explore=1.0)
    assert (report.verdict, report.findings) == ("clean", ())
    (kernel,) = report.kernels
    assert kernel.schedules is not None
    assert kernel.schedules.explored


@pytest.mark.parametrize("racy", [True, False])
def test_the_text_without_optimisation_is_compared(racy: bool) -> None:
    _, report = checked(*REMOVED, racy=racy, unoptimized="on")
    assert [(each.kind, each.severity, each.unoptimized) for each in report.findings] == [("data-race", "warning", True)] * racy
    assert report.verdict == "clean"


def test_a_large_launch_is_left_out_and_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_machine, "MOST_THREADS", 63)
    _, report = checked(*WAITS, racy=True)
    (kernel,) = report.kernels
    assert kernel.schedules is not None
    assert kernel.schedules.ended == "not explored: the launch is large for the virtual machine"
    assert report.verdict == "clean"


def test_nothing_is_repeated_where_nothing_could_come_of_it() -> None:
    before, report = checked(*REMOVED, racy=True)
    assert report is before
