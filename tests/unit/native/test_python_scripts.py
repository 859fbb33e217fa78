"""Scripts whose framework launches by itself: on a GPU they run with the interposer."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from consan.native import run
from consan.native.python.scripts import find_framework_program, framework_of

SCRIPTS = [
    ("import warp as wp", "Warp"),
    ("from cutlass import cute", "CuTe DSL"),
    ("def f():\n    from flash_attn import cute", "CuTe DSL"),
    ("import tilelang.language as T", "tilelang"),
    ("from jax.experimental import pallas", "JAX"),
    ("import flash_attn", ""),
    ("import torch  # not warp", ""),
    ("from .warp import x", ""),
    ("import jaxtyping", ""),
    ("import warp as", ""),
]


def arguments(script: Path, **others: object) -> argparse.Namespace:
    return argparse.Namespace(**{"program": [str(script), "racy"], "module": None, "code": None, "device": "auto", **others})


@pytest.mark.parametrize(("text", "framework"), SCRIPTS)
def test_the_framework_of_a_script(text: str, framework: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(text + "\n")
    assert framework_of(script) == framework


def test_a_script_runs_with_the_interposer_where_there_is_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.py"
    script.write_text("import warp\n")
    monkeypatch.setattr(run, "has_gpu", lambda: True)
    found = find_framework_program(arguments(script))
    assert found is not None
    assert (found.file, found.words, found.label) == (sys.executable, (sys.executable, str(script), "racy"), str(script))
    assert "Warp" in found.note
    assert find_framework_program(arguments(script, device="cpu")) is None
    assert find_framework_program(arguments(script, module=["warp"], program=[])) is None
    monkeypatch.setattr(run, "has_gpu", lambda: False)
    assert find_framework_program(arguments(script)) is None
