"""Launches that were not made or checked in full, and errors behind them."""

from __future__ import annotations

import pytest
from audit_events import events_of, launch, rows_of

from consan.audit import rows
from consan.audit.confirming import CONFIRMED
from consan.audit.partial import LaunchRepeats, doubt


@pytest.mark.parametrize(("kind", "severity"), [("global-race", "warning"), ("out-of-bounds", "warning"), ("data-race", "error")])
def test_an_error_of_memory_behind_a_stopped_launch_is_a_warning(kind: str, severity: str) -> None:
    events = events_of(launch("first", stopped=True), launch("second", kind, hazard="WAR"))
    doubt(events)
    row = rows_of(events)["second"]
    assert row.findings[0].severity == severity
    assert row.verdict == ("violations" if severity == "error" else "incomplete")


def test_an_error_before_it_stays_one() -> None:
    events = events_of(launch("second", "global-race"), launch("first", stopped=True), launch("second", "global-race"))
    doubt(events)
    assert [each["verdict"] for each in events.launches["second"]] == ["violations", "violations"]


def test_a_launch_that_was_left_out_counts_as_stopped() -> None:
    events = events_of(launch("first"), "left out", launch("second", "out-of-bounds"))
    doubt(events)
    assert rows_of(events)["second"].verdict == "incomplete"


def test_writes_that_meet_behind_a_launch_that_was_left_out_are_warnings() -> None:
    """Two threads that write to one element have an index of memory, as a rule: of a histogram that was not counted to its end."""
    scattered, again = (launch(name, "data-race", hazard="WAW") for name in ("second", "third"))
    events = events_of(launch("first"), "left out", scattered, "begins", again)  # a program's next run has memory of its own
    doubt(events)
    assert [rows_of(events)[name].findings[0].severity for name in ("second", "third")] == ["warning", "error"]


@pytest.mark.parametrize("kinds", [(), ("data-race",)])
def test_an_incomplete_kernel_is_launched_again_with_few_ctas(kinds: tuple[str, ...]) -> None:
    events = events_of(launch("first", stopped=True), launch("second"))
    repeats = LaunchRepeats(events, stopped=False)
    assert repeats.open
    repeats.take(events_of(launch("space::first<float>", *kinds, stopped=True), launch("second", "data-race")))
    repeats.apply()
    assert not repeats.open
    found = rows_of(events)
    assert found["second"].verdict == "clean"  # its launches were complete
    assert found["space::first<float>"].verdict == ("violations" if kinds else "incomplete")
    assert [each.confirmed for each in found["space::first<float>"].findings] == [CONFIRMED] * len(kinds)


def test_what_is_known_is_not_looked_for() -> None:
    assert not LaunchRepeats(events_of(launch("first"), launch("second")), stopped=True).open
    assert not LaunchRepeats(events_of(launch("first"), names=("first", "second")), stopped=False).open
    assert not LaunchRepeats(events_of(launch("first"), launch("second", "data-race", stopped=True)), stopped=False).open


def test_a_kernel_behind_the_end_of_the_time_is_reached() -> None:
    events = events_of(launch("first"))
    repeats = LaunchRepeats(events, stopped=True)
    repeats.take(events_of(launch("first", stopped=True), launch("second", "global-race", stopped=True)))
    repeats.apply()
    row = rows_of(events)["second"]
    assert (row.verdict, row.findings[0].severity) == ("incomplete", "warning")  # `first` wrote a part of its results
    assert rows_of(events)["first"].verdict == "clean"


def test_results_are_not_compared_where_a_kernel_was_not_launched() -> None:
    events = events_of(launch("second"))
    events.take({"event": "failed", "kernel": "first", "verdict": rows.CRASHED, "why": "no memory"})
    events.take({"event": "error", "value": 1.0, "why": "the results differ"})
    assert rows.WRONG not in {row.verdict for row in events.result(None, 1.0).rows}
