"""Suppressions on the whole pipeline: from a comment or pyproject.toml to verdict, status, stored run and warnings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import consan
from consan.__main__ import main
from consan.config import tomllib
from consan.reports.formats import json_format

SOURCE = """extern "C" __global__ void shift(const float* in, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = in[t];@WRITE@
    out[t] = tile[63 - t];@READ@
}
"""
LAUNCH = ["--device", "cpu", "--grid", "1", "--block", "64", "--arg", "f32[64]=arange", "--arg", "f32[64]=zeros"]
TABLE = "[[tool.consan.suppressions]]\nkind = '{}'\nkernel = '{}'\nreason = 'known'\n"
SCRIPT = """
import cupy as cp
x, out = cp.arange(64, dtype=cp.float32), cp.zeros(64, dtype=cp.float32)
cp.RawKernel(open("k.cu").read(), "shift")((1,), (64,), (x, out))
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write()


def write(at_write: str = "", at_read: str = "") -> None:
    text = SOURCE.replace("@WRITE@", f"  // {at_write}" if at_write else "").replace("@READ@", f"  // {at_read}" if at_read else "")
    Path("k.cu").write_text(text)


def check(*words: str) -> tuple[int, dict[str, Any]]:
    status = main(["check", "k.cu", *LAUNCH, "-o", "r.json", *words])
    data: dict[str, Any] = json.loads(Path("r.json").read_text())
    jsonschema.Draft202012Validator(json_format.schema()).validate(data)
    return status, data


def test_by_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert check()[0] == 66
    Path("pyproject.toml").write_text(TABLE.format("data-race", "sh*") + TABLE.format("deadlock", "*"))
    capsys.readouterr()
    status, data = check("--strict")
    assert (status, data["verdict"]) == (0, "clean")
    assert {finding["suppressed"]["by"] for finding in data["findings"]} == {"pyproject.toml, suppression 1"}
    out, err = capsys.readouterr()
    assert err == "consan: warning: pyproject.toml, suppression 2: deadlock: this suppression covered no finding\n"
    assert "verdict: clean, 0 findings" in out


@pytest.mark.parametrize("side", ["at_write", "at_read"])
def test_by_a_comment(side: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(**{side: "consan: allow(data-race) a test of comments"})
    status, data = check()
    assert (status, data["verdict"], len(data["findings"])) == (0, "clean", 1)
    by = {"reason": "a test of comments", "by": f"{Path.cwd()}/k.cu:{4 if side == 'at_write' else 5}", "in_source": True}
    assert data["findings"][0]["suppressed"] == by
    assert capsys.readouterr().err == ""
    kernel = consan.Kernel("k.cu")
    report = consan.launch(kernel, 1, 64, [np.zeros(64, np.float32), np.zeros(64, np.float32)], device="cpu")
    assert report.verdict == "clean"


def test_a_comment_that_covers_nothing_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    write(at_read="consan: allow(deadlock) never happens")
    assert check()[0] == 66
    assert capsys.readouterr().err == f"consan: warning: {Path.cwd()}/k.cu:5: deadlock: this suppression covered no finding\n"


def test_a_comment_without_a_reason_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    write(at_read="consan: allow(data-race)")
    assert main(["check", "k.cu", *LAUNCH]) == 2
    assert capsys.readouterr().err == f"consan: error: {Path.cwd()}/k.cu:5: suppressing data-race needs a reason\n"


def test_a_program(tmp_path: Path) -> None:
    write(at_write="consan: allow(data-race) a test of comments")
    Path("script.py").write_text(SCRIPT)
    Path("pyproject.toml").write_text('[tool.consan]\ndevice = "cpu"\n')
    command = [sys.executable, "-m", "consan", "run", "-o", "r.json", "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a test of comments" in done.stdout
    assert json.loads(Path("r.json").read_text())["findings"][0]["suppressed"]["in_source"]


def test_emitted_suppressions_work_once_they_have_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert check()[0] == 66
    capsys.readouterr()
    assert main(["report", "r.json", "--emit-suppression"]) == 0
    text = capsys.readouterr().out
    (rule,) = tomllib.loads(text)["tool"]["consan"]["suppressions"]
    assert rule == {"kind": "data-race", "kernel": "shift", "source": "k.cu", "reason": ""}
    Path("pyproject.toml").write_text(text)
    assert main(["check", "k.cu", *LAUNCH]) == 2
    assert capsys.readouterr().err == "consan: error: pyproject.toml, suppression 1: suppressing data-race needs a reason\n"
    Path("pyproject.toml").write_text(text.replace('reason = ""', 'reason = "a test"'))
    status, data = check()
    assert (status, data["verdict"]) == (0, "clean")
    assert main(["report", "r.json", "--emit-suppression", "-o", "more.toml"]) == 0
    assert Path("more.toml").read_text() == ""
