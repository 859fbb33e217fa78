"""Repeats `consan check` in new processes, where a fault of a recorded kernel has taken the device and the record."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from consan.launching import AGAIN
from consan.reports.json_format import ReportError, loads
from consan.reports.model import Report
from consan.reports.verdict.combination import combine

_NOTE: Final = "checked again {how} in a new process, because the recorded kernel left no record: {why}"
_WAYS: Final = (  # the options of each further check, and what they are
    (("--engine", "inline"), "with called hooks (--engine inline)"),
    (("--device", "cpu", "--engine", "auto", "--timeout", f"{AGAIN:g}"), "on the virtual machine (--device cpu)"),
)


def checked_again(argv: Sequence[str], first: Report) -> Report:
    """The first further report that has findings, beside what the fault has left open.

    Hooks find what a thread does right before a fault, unless the fault comes first. The virtual machine has no such faults.
    """
    reports = [first]
    for options, how in _WAYS:
        report = _report_of([*argv, *options])
        if report is not None:
            reports.append(replace(report, notes=(*report.notes, _NOTE.format(how=how, why="; ".join(first.incomplete)))))
            if report.findings:
                break
    return combine(reports) if len(reports) > 1 else first


def _report_of(argv: Sequence[str]) -> Report | None:
    """The report of `consan` with these words; None if it has none."""
    with tempfile.TemporaryDirectory(prefix="consan-") as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-m", "consan", *argv, "--format", "json", "-o", str(path)]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        try:
            return loads(path.read_text())
        except (OSError, ReportError):
            return None
