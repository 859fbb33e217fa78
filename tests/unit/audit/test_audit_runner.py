"""Results of an audit's workers."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any

from consan.audit.rows import FileResult, KernelRow
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
