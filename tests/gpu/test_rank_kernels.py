"""The kernels of tests/ranks on two GPUs, a rank each, under `torchrun` and `consan run`: repaired ones are clean, faults are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import two_gpus
from ranks_support import DEADLOCKS, FAULTS, FOLDER, HIDDEN, MULTIMEM, SLOTS, THREADS, VALUES
from test_two_ranks import RACY, ranks, right

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("_two_gpus")]
# NVLink multicast stays off where GPUs may be shared with others.
KERNELS = [name for name in FAULTS if name not in MULTIMEM]
# It hangs if the signal that is lost comes first; and where no rank waits for the other, one may end before the other begins.
UNSURE = [("signals_reset", "RESET_EARLY"), ("ring_all_gather", "NO_WAIT"), ("put_with_signal", "WRONG_SLOT")]
CASES = [(name, fault) for name in KERNELS for fault in FAULTS[name] if (name, fault) not in DEADLOCKS]
PROGRAM = """
import os, torch, torch.distributed as dist, torch.distributed._symmetric_memory as symm
rank = int(os.environ["RANK"]); torch.cuda.set_device(rank)
dist.init_process_group("nccl")
kernel = torch.cuda._compile_kernel({source!r}, "kernel")

def of_both(count, first, dtype):
    mine = symm.empty(count, device="cuda", dtype=dtype)
    handle = symm.rendezvous(mine, dist.group.WORLD)
    mine.fill_(first)
    return [mine if each == rank else handle.get_buffer(each, (count,), dtype) for each in range(2)]

data, signals = of_both({values}, 0, torch.float32), of_both({slots}, {first}, torch.int32)
out = torch.zeros({values}, device="cuda")
torch.cuda.synchronize()
dist.barrier()
kernel(grid=({ctas}, 1, 1), block=({threads}, 1, 1), args=[*data, *signals, out, rank])
dist.barrier()
torch.cuda.synchronize()
dist.destroy_process_group()
"""


@pytest.fixture
def _two_gpus() -> None:
    two_gpus()


def program(name: str, fault: str = "") -> str:
    """A program of two ranks that launches a kernel of tests/ranks once in each."""
    header = (FOLDER / "ranks.cuh").read_text().replace("#pragma once", "")
    defines = {"RANKS": "2", **({"SCOPE": '"gpu"'} if fault == "GPU_SCOPE" else {fault: "1"} if fault else {})}
    source = "".join(f"#define {key} {value}\n" for key, value in defines.items())
    source += (FOLDER / f"{name}.cu").read_text().replace('#include "ranks.cuh"', header)
    first, ctas = -2 if name == "generation" else 0, 2 if name in ("counted_ctas", "fence_of_a_gpu") else 1
    return PROGRAM.format(source=source, values=VALUES, slots=SLOTS, first=first, ctas=ctas, threads=THREADS)


@pytest.mark.parametrize("name", KERNELS)
def test_without_a_fault_it_is_clean(tmp_path: Path, name: str) -> None:
    right(*ranks(tmp_path, program(name)))


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_fault_is_found(tmp_path: Path, name: str, fault: str) -> None:
    """A rank may see a later signal than it waits for, which orders all; what a narrow scope has read is not certain between GPUs."""
    status, report = ranks(tmp_path, program(name, fault))
    uncertain = RACY if FAULTS[name][fault] == "scope" or (name, fault) in UNSURE else {66}
    assert status in ({0, *RACY} if (name, fault) in HIDDEN else uncertain), report
    assert status != 66 or {each["kind"] for each in report["findings"]} & {"global-race", "scope"}, report
