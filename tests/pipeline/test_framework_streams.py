"""Streams and events of CuPy's stand-in (R-GM14): each kind of edge, legal programs, and what a report says of a missing edge."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stream_programs import CLEAN, CLEAN_OF_BLOCKING, RACY, RACY_OF_BLOCKING, Program, findings, no_edge, one_value, ran

Run = Callable[[Program], None]


@pytest.mark.parametrize("program", CLEAN)
def test_a_program_with_an_edge_is_clean(program: Run) -> None:
    report = ran(program)
    assert (findings(report), report.verdict) == ([], "clean")
    assert "global-memory" in report.checked


@pytest.mark.parametrize("program", RACY)
def test_a_program_without_an_edge_is_not(program: Run) -> None:
    report = ran(program)
    assert {each[:2] for each in findings(report)} == {("global-race", "no-stream-edge")}
    assert report.verdict == "violations"


@pytest.mark.parametrize("program", CLEAN_OF_BLOCKING)
def test_the_default_stream_orders_blocking_streams(program: Run) -> None:
    assert ran(program, blocking=True).verdict == "clean"


@pytest.mark.parametrize("program", RACY_OF_BLOCKING)
def test_two_blocking_streams_are_apart(program: Run) -> None:
    assert ran(program, blocking=True).verdict == "violations"


def test_stores_of_one_value_are_a_warning() -> None:
    (finding,) = ran(one_value).findings
    assert (finding.hazard, finding.severity) == ("WAW", "warning")


def test_what_the_report_says() -> None:
    (finding,) = ran(no_edge).findings
    first, second = finding.accesses
    assert (first.role, first.name, second.role, second.name) == (
        *("write", "element 0 of argument 2 (y)"),
        *("read", "element 0 of argument 1 (y)"),
    )
    assert "tream 2 does not wait for stream 1: produce and consume touch the same bytes" in finding.message
    assert "second.wait_event(first.record())" in finding.fix
    assert (finding.count, finding.ctas) == (128, 2)
