"""What becomes of errors that were found at smaller sizes."""

from __future__ import annotations

from typing import Any

import pytest

from consan.audit import rows, table
from consan.audit.confirming import CONFIRMED, NOT_IN_TIME, NOT_THERE, Confirmation, ResultConfirmation
from consan.audit.rows import FileEvents


def _finding(*lines: int, kind: str = "data-race", severity: str = "error") -> dict[str, Any]:
    return {"kind": kind, "severity": severity, "file": "k.cu", "line": lines[-1], "message": "a race", "lines": list(lines)}


def _events(*found: dict[str, Any], kernel: str = "k", partly: bool = False, smaller: bool = True, done: bool = True) -> FileEvents:
    """The events of a run with one launch."""
    events = FileEvents("k.cu")
    errors = any(each["severity"] == "error" for each in found)
    launch = {"event": "launch", "kernel": kernel, "launch": "1 x 32", "seconds": 0.1, "guessed": False, "answers": None}
    events.take({"event": "kernels", "names": ["k"]})
    events.take({**launch, "verdict": "violations" if errors else "clean", "findings": list(found), "incomplete": ["why"] * partly})
    for name in ("smaller",) * smaller + ("done",) * done:
        events.take({"event": name})
    return events


def _row(events: FileEvents, again: FileEvents | None, *, ended: bool = True) -> rows.KernelRow:
    confirmation = Confirmation(events)
    if again is not None:
        confirmation.take(again, ended=ended)
    confirmation.apply()
    return events.result(None, 1.0).rows[0]


def test_an_error_at_the_sources_own_sizes_is_confirmed() -> None:
    events = _events(_finding(5, 7), smaller=False)
    assert not Confirmation(events).open
    assert _row(events, None).findings[0].confirmed == CONFIRMED


@pytest.mark.parametrize(
    ("again", "state"),
    [
        (_events(_finding(5, 7)), CONFIRMED),
        (_events(_finding(6, 7), kernel="space::k<float, 128>"), CONFIRMED),  # another pair of accesses, another instance
        (_events(_finding(5, 7), partly=True, done=False), CONFIRMED),
        (_events(), NOT_THERE),
        (_events(_finding(8, 9)), NOT_THERE),
        (_events(_finding(5, 7, kind="missing-wait")), NOT_THERE),
        (_events(_finding(5, 7), kernel="other"), NOT_THERE),  # its program does not launch it in this shape
        (_events(partly=True), NOT_IN_TIME),
        (_events(done=False), NOT_IN_TIME),
    ],
)
def test_a_run_with_published_sizes_decides(again: FileEvents, state: str) -> None:
    row = _row(_events(_finding(5, 7)), again)
    assert row.findings[0].confirmed == state
    assert row.verdict == (rows.SMALLER if state == NOT_THERE else "violations")
    assert row.findings[0].severity == ("warning" if state == NOT_THERE else "error")


def test_an_access_out_of_bounds_may_come_of_the_smaller_sizes() -> None:
    found = _finding(5, kind="out-of-bounds")
    row = _row(_events(found), _events(done=False))
    assert (row.verdict, row.findings[0].severity, row.findings[0].confirmed) == (rows.SMALLER, "warning", NOT_IN_TIME)
    row = _row(_events(_finding(5, kind="out-of-bounds")), _events(_finding(5, kind="out-of-bounds")))
    assert (row.verdict, row.findings[0].severity) == ("violations", "error")
    assert _row(_events(_finding(5, kind="out-of-bounds"), smaller=False), None).verdict == "violations"


def test_a_run_that_was_stopped_refutes_nothing() -> None:
    assert _row(_events(_finding(5, 7)), _events(), ended=False).findings[0].confirmed == NOT_IN_TIME


def test_a_run_that_failed_refutes_nothing() -> None:
    again = _events()
    again.take({"event": "failed", "kernel": "", "verdict": rows.CRASHED, "why": "no memory"})
    assert _row(_events(_finding(5, 7)), again).verdict == "violations"


def test_one_confirmed_error_keeps_the_verdict() -> None:
    row = _row(_events(_finding(5, 7), _finding(8, 9), _finding(3, severity="warning")), _events(_finding(8, 9)))
    assert [(each.severity, each.confirmed) for each in row.findings] == [("warning", NOT_THERE), ("error", CONFIRMED), ("warning", "")]
    assert row.verdict == "violations"


@pytest.mark.parametrize(
    ("again", "verdict", "state"),
    [
        ({"value": 2.0, "why": "they differ"}, rows.WRONG, CONFIRMED),
        ({"value": 0.0, "why": ""}, rows.SMALLER, NOT_THERE),
        (None, rows.WRONG, NOT_IN_TIME),
    ],
)
def test_a_wrong_result_is_looked_for_at_the_published_shape(again: dict[str, Any] | None, verdict: str, state: str) -> None:
    events, other = _events(), _events(smaller=False)
    events.take({"event": "error", "value": 1.0, "why": "the results differ"})
    if again is not None:
        other.take({"event": "error", **again})
    confirmation = ResultConfirmation(events)
    assert confirmation.open
    confirmation.take(other)
    confirmation.apply()
    row = events.result(None, 1.0).rows[-1]
    assert (row.verdict, row.note) == (verdict, f"the results differ ({state})")


def test_the_table_says_it_and_the_status_follows() -> None:
    events = _events(_finding(5, 7))
    confirmation = Confirmation(events)
    confirmation.take(_events(), ended=True)
    confirmation.apply()
    results = [events.result(None, 1.0)]
    assert "published shape" in table.as_text(results)
    assert NOT_THERE in table.as_text(results)
    assert (table.status(results), table.status(results, strict=True)) == (67, 66)
    assert rows.FileResult.of(results[0].as_dict()) == results[0]
