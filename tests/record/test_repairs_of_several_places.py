"""Fixes of `consan check` that belong where all threads come, or into a function that is inlined several times."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
import twin_file
from planted import plant

from consan.__main__ import main
from consan.checker.repairs import text_repairs
from consan.reports.source import source_candidates
from consan.session.asking import reruns

KERNELS = Path(__file__).parents[1] / "kernels"
# A twin; what its fix says; a fault, with which it does not.
FIXES: dict[str, tuple[str, ModuleType, str, str]] = {
    "global/grid_barrier_one_thread_arrives": (
        "put bar.sync 0 (__syncthreads()) before the bra at grid_barrier_one_thread_arrives.cu:16",
        *(text_repairs, "self._around_flags, ", ""),
    ),
    "global/grid_barrier_one_thread_waits": (
        "at grid_barrier_one_thread_waits.cu:29, and put bar.sync 0 (__syncthreads()) before the add.f32",
        *(text_repairs, "self._around_flags, ", ""),
    ),
    "global/value_behind_its_flag": (
        "move line 19 before value_behind_its_flag.cu:17",
        *(source_candidates, "named + ahead + released", "named + released"),
    ),
    "twins/cluster_some_read_peer": (
        "barrier.cluster.wait after cluster_some_read_peer.cu:22",
        *(reruns, "outside(self.source.text, line) if any(", "line if any("),
    ),
}


def _fix(name: str, folder: Path) -> str:
    spec = twin_file.read(KERNELS / f"{name}.cu")
    values = zip(spec.args.values(), ("arange", *["zeros"] * len(spec.args)), strict=False)
    words = [word for each, value in values for word in ("--arg", f"{each.dtype.kind}{8 * each.itemsize}[{each.size}]={value}")]
    shape = ("--grid", str(spec.grid[0]), "--block", str(spec.block[0]), "--arch", spec.arch, "--device", "cpu", "--explore", "0s")
    out = folder / "report.json"
    main(["check", str(spec.path), "--define", "RACY=1", *shape, *words, "--format", "json", "-o", str(out)])
    finding = json.loads(out.read_text())["findings"][0]
    return str(finding["fix"]) if "verified" in finding else ""


@pytest.mark.parametrize("name", [pytest.param(each, marks=[pytest.mark.slow] if each.endswith("waits") else []) for each in FIXES])
def test_a_fix_and_a_fault(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, module, old, new = FIXES[name]
    assert words in _fix(name, tmp_path)
    plant(monkeypatch, module, old, new)
    assert words not in _fix(name, tmp_path)
