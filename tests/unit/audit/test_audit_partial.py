"""Launches that were not made or checked in full, and errors behind them."""

from __future__ import annotations

from typing import Any

import pytest

from consan.audit import rows
from consan.audit.confirming import CONFIRMED
from consan.audit.partial import LaunchRepeats, doubt
from consan.audit.rows import FileEvents, KernelRow


def _launch(kernel: str, *kinds: str, stopped: bool = False) -> dict[str, Any]:
    found = [{"kind": kind, "severity": "error", "file": "k.cu", "line": 5, "message": "wrong", "lines": [5]} for kind in kinds]
    verdict = "violations" if found else "incomplete" if stopped else "clean"
    launch = {"event": "launch", "kernel": kernel, "launch": "1 x 32", "seconds": 0.1, "guessed": False, "answers": None}
    return {**launch, "verdict": verdict, "findings": found, "incomplete": ["it was stopped"] * stopped, "stopped": stopped}


def _events(*launches: dict[str, Any], names: tuple[str, ...] = ("first", "second")) -> FileEvents:
    events = FileEvents("k.cu")
    events.take({"event": "kernels", "names": list(names)})
    for launch in launches:
        events.take(launch)
    return events


def _rows(events: FileEvents) -> dict[str, KernelRow]:
    return {row.kernel: row for row in events.result(None, 1.0).rows}


@pytest.mark.parametrize(("kind", "severity"), [("global-race", "warning"), ("out-of-bounds", "warning"), ("data-race", "error")])
def test_an_error_of_memory_behind_a_stopped_launch_is_a_warning(kind: str, severity: str) -> None:
    events = _events(_launch("first", stopped=True), _launch("second", kind))
    doubt(events)
    row = _rows(events)["second"]
    assert row.findings[0].severity == severity
    assert row.verdict == ("violations" if severity == "error" else "incomplete")


def test_an_error_before_it_stays_one() -> None:
    events = _events(_launch("second", "global-race"), _launch("first", stopped=True), _launch("second", "global-race"))
    doubt(events)
    assert [each["verdict"] for each in events.launches["second"]] == ["violations", "violations"]


def test_a_launch_that_was_left_out_counts_as_stopped() -> None:
    events = _events(_launch("first"))
    events.take({"event": "left out"})
    events.take(_launch("second", "out-of-bounds"))
    doubt(events)
    assert _rows(events)["second"].verdict == "incomplete"


@pytest.mark.parametrize(
    "message",
    ["the write at k.cu:5 and the write at k.cu:9 can land in either order", "lanes of one warp store different values to the same bytes"],
)
def test_writes_that_meet_behind_a_launch_that_was_left_out_are_warnings(message: str) -> None:
    """Two threads that write to one element have an index of memory, as a rule: of a histogram that was not counted to its end."""
    events = _events(_launch("first"))
    events.take({"event": "left out"})
    scattered, again = _launch("second", "data-race"), _launch("third", "data-race")
    for each in (scattered, again):
        each["findings"][0]["message"] = message
    events.take(scattered)
    events.take({"event": "begins"})  # a program's next run has memory of its own
    events.take(again)
    doubt(events)
    assert [_rows(events)[name].findings[0].severity for name in ("second", "third")] == ["warning", "error"]


@pytest.mark.parametrize("kinds", [(), ("data-race",)])
def test_an_incomplete_kernel_is_launched_again_with_few_ctas(kinds: tuple[str, ...]) -> None:
    events = _events(_launch("first", stopped=True), _launch("second"))
    repeats = LaunchRepeats(events, stopped=False)
    assert repeats.open
    repeats.take(_events(_launch("space::first<float>", *kinds, stopped=True), _launch("second", "data-race")))
    repeats.apply()
    assert not repeats.open
    found = _rows(events)
    assert found["second"].verdict == "clean"  # its launches were complete
    assert found["space::first<float>"].verdict == ("violations" if kinds else "incomplete")
    assert [each.confirmed for each in found["space::first<float>"].findings] == [CONFIRMED] * len(kinds)


def test_what_is_known_is_not_looked_for() -> None:
    assert not LaunchRepeats(_events(_launch("first"), _launch("second")), stopped=True).open
    assert not LaunchRepeats(_events(_launch("first"), names=("first", "second")), stopped=False).open
    assert not LaunchRepeats(_events(_launch("first"), _launch("second", "data-race", stopped=True)), stopped=False).open


def test_a_kernel_behind_the_end_of_the_time_is_reached() -> None:
    events = _events(_launch("first"))
    repeats = LaunchRepeats(events, stopped=True)
    repeats.take(_events(_launch("first", stopped=True), _launch("second", "global-race", stopped=True)))
    repeats.apply()
    row = _rows(events)["second"]
    assert (row.verdict, row.findings[0].severity) == ("incomplete", "warning")  # `first` wrote a part of its results
    assert _rows(events)["first"].verdict == "clean"


def test_results_are_not_compared_where_a_kernel_was_not_launched() -> None:
    events = _events(_launch("second"))
    events.take({"event": "failed", "kernel": "first", "verdict": rows.CRASHED, "why": "no memory"})
    events.take({"event": "error", "value": 1.0, "why": "the results differ"})
    assert rows.WRONG not in {row.verdict for row in events.result(None, 1.0).rows}
