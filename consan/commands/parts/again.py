"""Repeats `consan check` in a new process, where a fault of a recorded kernel has taken the device and the record."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from consan.launching import AGAIN
from consan.reports.formats.json_format import ReportError, loads
from consan.reports.model import Report
from consan.reports.verdict.combination import combine

_NOTE: Final = (
    "checked again on the virtual machine (--device cpu) in a new process, because the recorded kernel left no log: {why};"
    " --engine inline finds on the GPU what a thread does right before the fault"
)
_OPTIONS: Final = ("--device", "cpu", "--timeout", f"{AGAIN:g}")


def checked_again(argv: Sequence[str], first: Report) -> Report:
    """The report of the virtual machine, which has no such faults, beside what the fault has left open."""
    report = _report_of([*argv, *_OPTIONS])
    if report is None:
        return first
    return combine([first, replace(report, notes=(*report.notes, _NOTE.format(why="; ".join(first.incomplete))))])


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
