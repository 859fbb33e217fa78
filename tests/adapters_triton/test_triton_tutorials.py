"""Triton's own tutorials on the virtual machine: unmodified files, small sizes, clean, and right by their own checks.

CONSAN_TRITON_TUTORIALS names the folder `python/tutorials` of a checkout of Triton, of the version that is installed; without it
nothing runs. Needs torch. Sizes are those that a script or its command line lets one choose, except for layer norm, whose size is a
constant: at its 1151 rows torch's own gradient in half precision is off by 0.06 on a CPU, and the script's comparison with it fails.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ.get("CONSAN_TRITON_TUTORIALS", "/nonexistent"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="CONSAN_TRITON_TUTORIALS does not name a folder"),
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]

# `validate` is what the script calls for sizes of 8192; a tile is 128 by 128, so that CTAs take several.
PERSISTENT = """
import importlib.util, sys, torch
spec = importlib.util.spec_from_file_location("persistent", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["persistent"] = module
spec.loader.exec_module(module)
torch.manual_seed(0)
module.validate(320, 288, 96, torch.float16)
"""
ATTENTION = [
    f"test_op[{name}-64-128-2-1]" for name in ("triton-fp16-bwd-False-False", "triton-fp16-bwd-False-True", "triton-fp8-fwd-False-False")
]


def run(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    command = [sys.executable, "-W", "ignore", "-m", "consan", "run", "--device", "cpu", "-o", "run.json", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    return done, json.loads((folder / "run.json").read_text())


@pytest.mark.parametrize("name", ["01-vector-add", "02-fused-softmax", "03-matrix-multiplication"])
def test_unmodified(name: str, tmp_path: Path) -> None:
    done, report = run(tmp_path, str(FOLDER / f"{name}.py"))
    assert (done.returncode, report["verdict"]) == (0, "clean"), done.stdout + done.stderr
    assert "\N{CROSS MARK}" not in done.stdout
    assert any("benchmark skipped" in note for note in report["notes"])


def test_layer_norm(tmp_path: Path) -> None:
    text = (FOLDER / "05-layer-norm.py").read_text()
    assert text.count("test_layer_norm(1151, 8192, torch.float16)") == 1
    (tmp_path / "script.py").write_text(text.replace("test_layer_norm(1151, 8192", "test_layer_norm(151, 1024"))
    done, report = run(tmp_path, "script.py")
    assert (done.returncode, report["verdict"]) == (0, "clean"), done.stdout + done.stderr


@pytest.mark.parametrize("test", ATTENTION)
def test_fused_attention(test: str, tmp_path: Path) -> None:
    done, report = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{FOLDER / '06-fused-attention.py'}::{test}")
    assert (done.returncode, report["verdict"]) == (0, "clean"), done.stdout + done.stderr


def test_persistent_matmul(tmp_path: Path) -> None:
    import triton

    done, report = run(tmp_path, "-c", PERSISTENT, str(FOLDER / "09-persistent-matmul.py"))
    assert "\N{CROSS MARK}" not in done.stdout
    assert done.stdout.count("\N{WHITE HEAVY CHECK MARK}") == 7, done.stdout + done.stderr
    if triton.__version__.startswith("3.6."):
        # Where it specialises warps, Triton 3.6 initialises mbarriers that nothing uses, all of them at offset 0, which holds a tile.
        assert {(finding["kind"], finding["kernel"]) for finding in report["findings"] if finding["severity"] == "error"} == {
            ("barrier-misuse", "matmul_kernel_descriptor_persistent")
        }
    else:
        assert (done.returncode, report["verdict"]) == (0, "clean"), done.stdout + done.stderr
