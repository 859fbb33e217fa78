"""Runs a script under `consan run` on the GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def run(folder: Path, script: str, *options: str, **environment: str) -> tuple[int, dict[str, Any]]:
    """The exit status and the report."""
    (folder / "script.py").write_text(script + "\n")
    output = folder / "report.json"
    command = [sys.executable, "-m", "consan", "run", "--device", "gpu", "--format", "json", "-o", str(output), *options, "script.py"]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=280, check=False)
    assert output.exists(), done.stdout + done.stderr
    return done.returncode, json.loads(output.read_text())


def marked(folder: Path, *marks: str) -> set[int]:
    """Lines of the script that end in one of the marks."""
    lines = (folder / "script.py").read_text().splitlines()
    return {number for number, text in enumerate(lines, 1) if text.rstrip().endswith(marks)}


def engines(report: dict[str, Any]) -> dict[str, int]:
    """The launches that each engine has checked."""
    launches: dict[str, int] = {}
    for kernel in report["kernels"]:
        if kernel["launches"]:
            launches[kernel["engine"]] = launches.get(kernel["engine"], 0) + kernel["launches"]
    return launches


def found(report: dict[str, Any]) -> set[tuple[str, int]]:
    """File name and line of every access in the findings."""
    return {(Path(access["file"]).name, access["line"]) for finding in report["findings"] for access in finding["accesses"]}


COUNT = (
    "import ctypes; d = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(); d.cuInit(0); d.cuDeviceGetCount(ctypes.byref(n)); print(n.value)"
)


def two_gpus() -> None:
    """Skip the test where there are fewer than two."""
    found = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=False)
    if found.returncode or int(found.stdout) < 2:
        pytest.skip("fewer than two GPUs")
