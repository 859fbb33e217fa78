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


PROGRAM = """
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import triton
import triton.language as tl

@triton.jit
def take(source, target, count: tl.constexpr):
    i = tl.arange(0, count)
    tl.store(target + i, tl.load(source + i))

dist.init_process_group("nccl")
rank, other = dist.get_rank(), torch.zeros(64, device="cuda")

@torch.library.custom_op(f"of_rank_{rank}::fill", mutates_args=("x",))
def custom(x: torch.Tensor) -> None:
    x.fill_(2.0)

data = symm_mem.empty(64, dtype=torch.float32, device="cuda")
handle = symm_mem.rendezvous(data, dist.group.WORLD)
peer = handle.get_buffer(1 - rank, (64,), torch.float32)
handle.barrier()
take[(1,)](data, torch.zeros(64, device="cuda"), 32)
STEP
handle.barrier()
"""
OPERATIONS = {
    "peer.copy_(other)": "violations",
    "handle.barrier(); peer.copy_(other)": "clean",
    "peer[:32] = 3": "violations",
    "peer[32:] = 3": "clean",
    "peer[torch.arange(4)] = 3": "incomplete",
    "peer += 1": "violations",
    "torch.add(other, 1, out=peer)": "violations",
    "torch._foreach_add_([other, peer], 1.0)": "violations",
    "torch.ops.aten.copy_.default(peer, other)": "violations",
    "torch.zeros_like(peer)": "clean",
    "peer.cpu().fill_(3)": "clean",
    "custom(peer)": "incomplete",
    "w = dist.all_reduce(other, async_op=True); other.fill_(1); w.wait()": "violations",
    "w = dist.all_reduce(other, async_op=True); w.wait(); other.fill_(1)": "clean",
    "side = torch.cuda.Stream()\nwith torch.cuda.stream(side): take[(1,)](other, torch.zeros(64, device='cuda'), 32)": "incomplete",
}


@pytest.mark.parametrize("step", OPERATIONS)
def test_operations_of_torch_on_symmetric_memory(tmp_path: Path, step: str) -> None:
    """Beside a kernel of the peer that reads the first half. With torch itself, of `make test-versions`."""
    report = of_two(tmp_path, PROGRAM.replace("STEP", step))
    assert report["verdict"] == OPERATIONS[step], report


def of_two(tmp_path: Path, text: str, ranks: int = 2) -> dict[str, Any]:
    """The report of a program of two ranks, with torch itself."""
    pytest.importorskip("torch")
    program, stored = tmp_path / "program.py", tmp_path / "run.json"
    program.write_text(text)
    command = ["run", "--ranks", str(ranks), "--device", "cpu", "-o", str(stored), str(program)]
    done = subprocess.run([sys.executable, "-m", "consan", *command], capture_output=True, text=True, check=False, timeout=300)
    assert stored.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(stored.read_text())
    return found


DEVICES = """
import torch
import launches

torch.cuda.set_device(FIRST)
x = torch.zeros(64, device="cuda")
launches.put(x, torch.ones(64, device="cuda:FIRST"))
with torch.cuda.device(SECOND):
    launches.put(x, torch.ones(64, device="cuda:1"))
"""


@pytest.mark.parametrize(("first", "second", "verdict"), [(0, 1, "incomplete"), (1, 1, "clean")])
def test_two_devices_are_one_and_the_report_says_so(tmp_path: Path, first: int, second: int, verdict: str) -> None:
    """On GPUs nothing orders the launches of two devices."""
    (tmp_path / "launches.py").write_text(LAUNCHES)
    report = of_two(tmp_path, DEVICES.replace("FIRST", str(first)).replace("SECOND", str(second)), ranks=1)
    assert (report["verdict"], any("are one on the virtual machine" in why for why in report["incomplete"])) == (
        verdict,
        verdict == "incomplete",
    ), report


COMPILED = """
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

dist.init_process_group("nccl")
data = symm_mem.empty(64, dtype=torch.float32, device="cuda")
handle = symm_mem.rendezvous(data, dist.group.WORLD)
peer = handle.get_buffer(1 - dist.get_rank(), (64,), torch.float32)

@torch.compile(fullgraph=True)
def put(x, y):
    import launches
    launches.put(peer, x * 2 + y)

put(torch.ones(64, device="cuda"), torch.ones(64, device="cuda"))
BARRIER
print(data.sum())
handle.barrier()
"""
LAUNCHES = """
import triton
import triton.language as tl

@triton.jit
def move(target, source, count: tl.constexpr):
    i = tl.arange(0, count)
    tl.store(target + i, tl.load(source + i))

def put(target, source):
    move[(1,)](target, source, 64)
"""


@pytest.mark.parametrize(("barrier", "verdict"), [("handle.barrier()", "clean"), ("", "violations")])
def test_compiled_functions_run_as_they_are(tmp_path: Path, barrier: str, verdict: str) -> None:
    """torch.compile needs a GPU for the kernels that it makes. Triton is imported behind the first operations on symmetric memory."""
    (tmp_path / "launches.py").write_text(LAUNCHES)
    report = of_two(tmp_path, COMPILED.replace("BARRIER", barrier))
    assert (report["verdict"], report["exit"]) == (verdict, 0), report
    assert any("torch.compile does nothing" in note for note in report["notes"])
