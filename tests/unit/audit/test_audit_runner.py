"""Results of an audit's workers."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any

import pytest

from consan.audit import rows
from consan.audit.rows import FileEvents, FileResult, KernelRow
from consan.audit.runner import AuditRequest, Journal, run


class _Cluster(Executor):
    """Its workers die of one file."""

    def submit(self, function: Any, /, *given: Any, **named: Any) -> Future[Any]:
        """As an executor's."""
        future: Future[Any] = Future()
        if given[0].file == "deadly.cu":
            future.set_exception(RuntimeError("killed"))
        else:
            future.set_result(FileResult(given[0].file, (KernelRow(given[0].file, "k", "clean"),)))
        return future


def test_a_worker_that_dies_leaves_a_row() -> None:
    found = run([AuditRequest("deadly.cu", ""), AuditRequest("k.cu", "")], _Cluster(), Journal(None))
    assert [[(row.file, row.verdict, row.note) for row in each.rows] for each in found] == [
        [("deadly.cu", "crashed", "the worker of the audit failed: RuntimeError: killed")],
        [("k.cu", "clean", "")],
    ]


@pytest.mark.parametrize("stopped", [True, False])
def test_results_are_not_compared_where_a_launch_was_stopped(*, stopped: bool) -> None:
    events = FileEvents("k.py")
    launch = {
        "launch": "1 x 32",
        "verdict": "incomplete",
        "findings": [],
        "incomplete": [],
        "seconds": 0.1,
        "guessed": False,
        "answers": None,
    }
    events.take({"event": "launch", "kernel": "k", **launch, "stopped": stopped})
    events.take({"event": "error", "value": 1.0, "why": "the results differ"})
    found = events.result(None, 1.0)
    assert [row.verdict for row in found.rows] == (["incomplete"] if stopped else ["incomplete", rows.WRONG])
    assert (found.error, len(found.notes)) == ((None, 1) if stopped else (1.0, 0))
