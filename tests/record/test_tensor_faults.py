"""Faults planted in the checker's rules for tensor memory change what is found in a kernel of tests/kernels/blackwell."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest
import twin_file

import consan
from consan.checker import build, replay

KERNELS = Path(__file__).parents[1] / "kernels" / "blackwell"
ORDER, MEMORY = "tensor_order.hpp", "tensor_memory.hpp"
# The file, what is replaced by what, and a twin that is reported only with the rule, or is clean only with it.
RULES = {
    "completion": (ORDER, "        if (issuers_.complete(old.ticket, now.thread)) return true;\n", "", "load_not_waited", False),
    "stores": (MEMORY, "event.a == 1 ? BY_WAIT_LD : BY_WAIT_ST", "BY_WAIT_LD", "store_pending", False),
    "unwritten": (ORDER, "if (access.reads) check_written(access, piece);", "", "accumulate_unwritten", True),
}
QUICK = ("completion",)  # the others compile the checker for a minute


def _found(name: str, racy: bool) -> set[tuple[Any, ...]]:
    spec = twin_file.read(KERNELS / f"{name}.cu")
    kernel = twin_file.kernel(spec.path, racy)
    report = consan.launch(kernel, spec.grid, spec.block, spec.parameters(spec.fresh_args()), device="cpu", engine="record")
    return {(one.kind, one.severity, tuple(access.line for access in one.pair)) for one in report.findings}


def test_each_fault_changes_text_that_is_there() -> None:
    sources = build.sources()
    assert [rule for rule, (file, old, *_) in RULES.items() if sources[file].count(old) != 1] == []


@pytest.mark.parametrize("fault", [pytest.param(RULES[rule], id=rule, marks=[] if rule in QUICK else pytest.mark.slow) for rule in RULES])
def test_a_fault_in_a_rule(fault: tuple[str, str, str, str, bool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file, old, new, name, racy = fault
    right, sources, command = _found(name, racy), build.sources(), build.compiler()
    assert command is not None
    sources[file] = sources[file].replace(old, new)
    monkeypatch.setattr(build, "OPTIONS", ("-O0", "-std=c++17", "-shared", "-fPIC"))
    (tmp_path / "broken.so").write_bytes(build.compile_checker(command, sources))
    broken = ctypes.CDLL(str(tmp_path / "broken.so"))
    monkeypatch.setattr(replay, "library", lambda: broken)
    assert _found(name, racy) != right
