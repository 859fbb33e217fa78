"""Programmatic dependents of public reports (tests/kernels/launches/reports.cu): found as reported, and clean with the wait."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch_programs import FOLDER, floats, situations

import consan

# By kernel: the fault's situations. Two arrays are read without a wait in `product`.
REPORTED = {"scaled": 1, "loaded": 1, "product": 2, "merged": 1, "scheduled": 1, "transformed": 1, "grouped": 1}


def launched(entry: str, *, racy: bool) -> consan.Report:
    file: Path = FOLDER / "reports.cu"
    defines = {"RACY": 1} if racy else {}
    x, values, out, scales = floats(), floats(), floats(), floats(4)
    with consan.check(device="cpu") as live:
        stream = consan.Stream()
        consan.launch(consan.Kernel(file, entry="quantize", defines=defines), 2, 64, [x, values, scales], device="cpu", stream=stream)
        dependent = consan.Kernel(file, entry=entry, defines=defines)
        consan.launch(dependent, 2, 64, [values, scales, out], device="cpu", stream=stream, programmatic=True)
    assert (out == 2).all()
    return live.report


@pytest.mark.parametrize("entry", ["scaled", *(pytest.param(each, marks=pytest.mark.slow) for each in list(REPORTED)[1:])])
def test_a_dependent_as_reported(entry: str) -> None:
    assert situations(launched(entry, racy=True)) == [("no-grid-wait", "RAW", "error")] * REPORTED[entry]
    report = launched(entry, racy=False)
    assert (report.verdict, situations(report)) == ("clean", [])
