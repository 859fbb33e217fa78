"""`consan audit --device gpu`: the corpus on a GPU. Where there is none, rows say so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from audit_modules import FOLDER, MODULES

VIRTUAL_ONLY = {"beyond_end", "shuffle_mask"}
"""Bugs that only the virtual machine names: it knows the bounds of global memory, and a GPU hangs in a shuffle that lacks lanes."""


def _audited(folder: Path, *options: str, **environment: str) -> dict[str, Any]:
    """What the command writes of a folder."""
    output = folder / "out.json"
    command = [sys.executable, "-m", "consan", "audit", str(folder), "--device", "gpu", "-o", str(output), *options]
    subprocess.run(command, check=False, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    return {Path(each["file"]).stem: each for each in json.loads(output.read_text())["files"]}


@pytest.mark.gpu
def test_the_corpus_on_a_gpu(tmp_path: Path, gpu: None) -> None:
    (tmp_path / "harness.h").write_text((FOLDER / "harness.h").read_text())
    for module in MODULES:
        module.written(tmp_path)
    found = {stem: {row["kernel"]: row for row in each["rows"]} for stem, each in _audited(tmp_path).items()}
    wrong = [row for module in MODULES for row in found[module.path.stem].values() if row["verdict"] != "clean"]
    for module in MODULES:
        row = found[f"{module.path.stem}_bug"][module.expected[0]]
        if (row["verdict"] == "violations") == (module.path.stem in VIRTUAL_ONLY):
            wrong.append(row)
    assert wrong == []


def test_without_a_gpu_the_row_says_so(tmp_path: Path) -> None:
    text = "__global__ void k(int *out) { *out = 1; }\nint main() { int *out; cudaMalloc(&out, 4); k<<<1, 1>>>(out); }\n"
    (tmp_path / "k.cu").write_text(text)
    result = _audited(tmp_path, CUDA_VISIBLE_DEVICES="")["k"]
    assert {row["verdict"] for row in result["rows"]} <= {"crashed", "not reached"}
    assert any("--device gpu: " in row["note"] for row in result["rows"])


def test_schedules_are_not_chosen_on_a_gpu(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("int main() {}\n")
    command = [sys.executable, "-m", "consan", "audit", str(tmp_path), "--device", "gpu", "--seeds", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "--seeds is for --device cpu" in done.stderr
