"""`consan run --ranks N` with kernels of Triton, each specialised on its rank. Skipped where Triton is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="Triton is not installed")
FOLDER = Path(__file__).parents[2] / "tutorials" / "13_one_shot_all_reduce"


def ran(tmp_path: Path, ranks: int, name: str, *words: str) -> dict[str, Any]:
    """The report of a program of the tutorial."""
    stored = tmp_path / "run.json"
    command = ["run", "--ranks", str(ranks), "--device", "cpu", "-o", str(stored), *words, str(FOLDER / name)]
    done = subprocess.run([sys.executable, "-m", "consan", *command], capture_output=True, text=True, check=False, timeout=300)
    assert stored.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(stored.read_text())
    return found


def test_all_ranks_in_one_launch_and_another_schedule(tmp_path: Path) -> None:
    report = ran(tmp_path, 3, "solution.py", "--seed", "3")
    assert (report["verdict"], report["findings"], report["exit"]) == ("clean", [], 0)
    assert [(kernel["name"], kernel["launches"]) for kernel in report["kernels"]] == [("all_reduce", 1)]


def test_a_finding_names_ranks_and_the_symmetric_buffer(tmp_path: Path) -> None:
    report = ran(tmp_path, 4, "exercise.py")
    found = [finding for finding in report["findings"] if finding["kind"] == "global-race"]
    assert report["verdict"] == "violations"
    assert found
    for finding in found:
        sides = finding["accesses"][:2]
        assert len({side["rank"] for side in sides}) == 2
        assert all('symmetric buffer "data", rank ' in side["name"] for side in sides)
