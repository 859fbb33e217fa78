"""`consan audit` of modules with Triton kernels. Skipped where Triton is not installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from consan.audit import rows, verify
from consan.audit.rows import KernelRow
from consan.audit.runner import SERVERS

pytest.importorskip("triton", reason="Triton is not installed")

MODULE = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def doubled(value):
    return value + value

@triton.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(doubled(tl.load(x_ptr + at)), 0)
    ADD

@triton.jit
def other(out_ptr):
    tl.store(out_ptr, 1.0)
"""
PROGRAM = """
if __name__ == "__main__":
    x, out = np.ones(256, np.float32), np.zeros(1, np.float32)
    total[(4,)](x, out, BLOCK=64)
    LAST
"""
MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return (2 * x.sum()).reshape(1)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.zeros(1, device=x.device)
        total[(x.numel() // 64,)](x, out, BLOCK=64)
        return out

batch_size = 4

def get_inputs():
    return [torch.ones(batch_size, 64, device="cuda")]
"""
RACE = "tl.store(out_ptr, tl.load(out_ptr) + part)"
ATOMIC = "tl.atomic_add(out_ptr, part)"
LAST = "other[(1,)](out)"


@pytest.fixture(scope="module", autouse=True)
def servers_end() -> Iterator[None]:
    yield
    SERVERS.close()


def _rows(text: str) -> dict[str, KernelRow]:
    return {row.kernel: row for row in verify(text, budget=20).result.rows}


def test_a_program_with_a_race_is_reported_at_its_line() -> None:
    found = _rows((MODULE + PROGRAM).replace("ADD", RACE).replace("LAST", LAST))
    assert {name: row.verdict for name, row in found.items()} == {"total": "violations", "other": "clean"}
    assert {(each.kind, each.line) for each in found["total"].findings} == {("global-race", 14)}
    assert found["total"].launch == "4 x 128, 8 B"


def test_its_repair_is_clean() -> None:
    found = _rows((MODULE + PROGRAM).replace("ADD", ATOMIC).replace("LAST", LAST))
    assert {name: (row.verdict, row.launches) for name, row in found.items()} == {"total": ("clean", 1), "other": ("clean", 1)}


def test_a_kernel_that_is_not_launched_is_not_reached() -> None:
    found = _rows((MODULE + PROGRAM).replace("ADD", ATOMIC).replace("LAST", "pass"))
    assert {name: row.verdict for name, row in found.items()} == {"total": "clean", "other": rows.NOT_REACHED}


@pytest.mark.parametrize(("add", "verdict", "right"), [(RACE, "violations", False), (ATOMIC, "clean", True)])
def test_a_model_is_compared_with_its_reference(add: str, verdict: str, right: bool) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    text = (MODULE.partition("@triton.jit\ndef other")[0] + MODEL).replace("ADD", add)
    found = verify(text, budget=20)
    assert found.verdict == verdict, found.to_json()
    assert (found.error == 0) or not right


def test_results_of_several_schedules_are_compared() -> None:
    text = (MODULE + PROGRAM).replace("np.zeros(1,", "np.zeros(2,").replace("LAST", LAST)
    first = "before = tl.atomic_add(out_ptr + 1, 1.0)\n    tl.store(out_ptr, tl.program_id(0) + part, mask=before == 0.0)"
    answers = verify(text.replace("ADD", first), budget=20, seeds=8).answers
    assert answers["total"].depends_on_schedule.startswith("element 0 of argument 2 (out_ptr) differs with seed ")
    assert answers["other"].texts == ()
