"""Repeats `consan check` with called hooks in a new process, where a fault of a recorded kernel has taken the device and the record."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from consan.reports.json_format import ReportError, loads
from consan.reports.model import Report

_NOTE: Final = "checked again with called hooks (--engine inline) in a new process, because the recorded kernel left no record: {why}"


def with_hooks(argv: Sequence[str], first: Report) -> Report:
    """The report of a second check, which says why there was one; the first report if the second check has none."""
    with tempfile.TemporaryDirectory(prefix="consan-") as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-m", "consan", *argv, "--engine", "inline", "--format", "json", "-o", str(path)]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        try:
            second = loads(path.read_text())
        except (OSError, ReportError):
            return first
    return replace(second, notes=(*second.notes, _NOTE.format(why="; ".join(first.incomplete))))
