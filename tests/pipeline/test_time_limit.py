"""What follows a launch that `--timeout` has ended: what it did is checked as far as there is time, and no changed kernel is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from consan.__main__ import main
from consan.checker.judging import recorder
from consan.commands.check import RequestedLaunch
from consan.reports.formats.json_format import loads

SOURCE = """
extern "C" __global__ void k(int* out, int rounds) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    int a = s[63 - threadIdx.x];
    for (int i = 0; i < rounds; ++i) {
        __syncthreads();
        s[threadIdx.x] = a + i;
        __syncthreads();
        a += s[63 - threadIdx.x] * i;
    }
    out[blockIdx.x * 64 + threadIdx.x] = a;
}
"""


@pytest.mark.parametrize(("longest", "checked"), [(recorder.LONGEST_UNENDED, True), (0.0, False)])
def test_a_launch_that_is_stopped(longest: float, checked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recorder, "LONGEST_UNENDED", longest)
    monkeypatch.setattr(RequestedLaunch, "again", None)  # a repair that is tried would fail
    Path("k.cu").write_text(SOURCE)
    launch = ["--device", "cpu", "--grid", "2", "--block", "64", "--arg", "i32[128]=zeros", "--arg", "i32=100000000", "--timeout", "1"]
    assert main(["check", "k.cu", *launch, "-o", "r.json"]) == (66 if checked else 67)
    report = loads(Path("r.json").read_text())
    assert any("stopped after 1 s (--timeout SECONDS)" in why for why in report.incomplete)
    assert any("2 CTAs did not end, and were not checked" in why for why in report.incomplete) != checked
    assert [finding.kind for finding in report.findings] == ["data-race"] * checked
