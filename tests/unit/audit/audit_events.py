"""Events of an audited file, made by hand."""

from __future__ import annotations

import copy
from typing import Any

from consan.audit.rows import FileEvents, KernelRow


def launch(kernel: str, *kinds: str, stopped: bool = False, hazard: str | None = None) -> dict[str, Any]:
    """A launch with errors of these kinds."""
    place = {"severity": "error", "file": "k.cu", "line": 5, "message": "wrong", "lines": [5], "hazard": hazard}
    found = [{"kind": kind, **place} for kind in kinds]
    verdict = "violations" if found else "incomplete" if stopped else "clean"
    made = {"event": "launch", "kernel": kernel, "launch": "1 x 32", "seconds": 0.1, "guessed": False, "answers": None}
    return {**made, "verdict": verdict, "findings": found, "incomplete": ["it was stopped"] * stopped, "stopped": stopped}


def events_of(*sent: dict[str, Any] | str, names: tuple[str, ...] = ("first", "second")) -> FileEvents:
    """A file's events: launches, and names of events that have nothing else."""
    events = FileEvents("k.cu")
    events.take({"event": "kernels", "names": list(names)})
    for each in sent:
        events.take({"event": each} if isinstance(each, str) else copy.deepcopy(each))
    return events


def rows_of(events: FileEvents) -> dict[str, KernelRow]:
    """The rows, by their kernels."""
    return {row.kernel: row for row in events.result(None, 1.0).rows}
