"""Two ranks of `torchrun` on two GPUs under `consan run`: flags in symmetric memory, memory of a handle, what orders launches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import programs_of_two_ranks
import pytest
from programs import run, two_gpus

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("_two_gpus")]
TORCHRUN = "import sys, torch.distributed.run as r; sys.argv = ['torchrun', '--standalone', '--nproc-per-node', '2', 'ranks.py']; r.main()"
# Symmetric memory without multicast: GPUs may be shared with others.
QUIET = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
# Where no edge was seen and the launches did not run at the same time, they are named: a run may be incomplete in place of racy.
RACY = {66, 67}


@pytest.fixture
def _two_gpus() -> None:
    two_gpus()


def ranks(folder: Path, text: str) -> tuple[int, dict[str, Any]]:
    pytest.importorskip("triton")
    (folder / "ranks.py").write_text(text)
    status, report = run(folder, TORCHRUN, **QUIET)
    print(status, report["verdict"], report["incomplete"], [(each["kind"], each["situation"]) for each in report["findings"]])
    return status, report


def right(status: int, report: dict[str, Any]) -> None:
    assert (status, report["verdict"], report["findings"]) == (0, "clean", []), report


# Flags of `.gpu` scope order nothing between GPUs, and which store a poll has read is not certain then.
@pytest.mark.parametrize("fault", programs_of_two_ranks.FAULTS)
def test_an_all_reduce_with_flags(tmp_path: Path, fault: str) -> None:
    status, report = ranks(tmp_path, programs_of_two_ranks.flags(fault))
    if fault == "repaired":
        right(status, report)
    else:
        assert status in (RACY if fault == "scope of one GPU" else {66}), report


@pytest.mark.parametrize("name", programs_of_two_ranks.ORDERS)
def test_what_orders_the_launches_of_two_ranks(tmp_path: Path, name: str) -> None:
    """Whether racy launches ran at the same time is chance: else they are named."""
    status, report = ranks(tmp_path, programs_of_two_ranks.order(name))
    if programs_of_two_ranks.ORDERS[name][1]:
        right(status, report)
    else:
        assert status in RACY, report
        assert report["findings"] or any("no order between them was seen" in why for why in report["incomplete"]), report["incomplete"]


CUDA = '''
import torch, torch.distributed as dist, torch.distributed._symmetric_memory as symm
SOURCE = r"""
typedef unsigned u32;
__device__ void meet(u32 *there, u32 *here, u32 value) {
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 seen;
        asm volatile("st.release.sys.global.u32 [%0], %1;" :: "l"(there), "r"(value) : "memory");
        do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(here) : "memory"); while (seen < value);
    }
    __syncthreads();
}
extern "C" __global__ void all_reduce(float *mine, const float *peer, u32 *there, u32 *here, double value) {
    u32 i = threadIdx.x;
    mine[i] = value;
    START meet(there, here, 1);
    float sum = mine[i] + peer[i];
    END meet(there, here, 2);
    mine[i] = sum;
}
"""
rank = int(__import__("os").environ["RANK"]); torch.cuda.set_device(rank)
dist.init_process_group("nccl")
kernel = torch.cuda._compile_kernel(SOURCE, "all_reduce")
data = symm.empty(128, device="cuda", dtype=torch.float32)
handle = symm.rendezvous(data, dist.group.WORLD)
peer, mine, there = handle.get_buffer(1 - rank, (128,), torch.float32), handle.get_signal_pad(rank), handle.get_signal_pad(1 - rank)
torch.cuda.synchronize()
dist.barrier()
kernel(grid=(1, 1, 1), block=(128, 1, 1), args=[data, peer, there[256 + rank:], mine[257 - rank:], rank + 1.0])
dist.barrier()
torch.cuda.synchronize()
RESULT
dist.destroy_process_group()
'''


@pytest.mark.parametrize("fault", ["", "START", "END"], ids=["repaired", "no start barrier", "no end barrier"])
def test_a_cuda_kernel_over_symmetric_memory(tmp_path: Path, fault: str) -> None:
    text = CUDA.replace(fault, "if (0)") if fault else CUDA.replace("RESULT", "assert (data == 3).all()")
    for word in ("START", "END", "RESULT"):
        text = text.replace(word, "")
    status, report = ranks(tmp_path, text)
    if fault:
        assert status == 66, report
    else:
        right(status, report)


# Rank 1 opens memory of rank 0 by a handle of CUDA IPC and writes it. Nobody knows what else opens it.
OPENED = """
import os, torch, torch.distributed as dist, triton, triton.language as tl
import torch.multiprocessing.reductions
@triton.jit
def fill(out, value, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), value)
rank = int(os.environ["RANK"]); torch.cuda.set_device(rank)
dist.init_process_group("nccl")
data = torch.zeros(128, device="cuda:0") if not rank else None
given = [None]
if not rank:
    made, how = torch.multiprocessing.reductions.reduce_tensor(data)
    given = [(made, how)]
dist.broadcast_object_list(given, 0)
if rank:
    made, how = given[0]
    data = made(*how)
dist.barrier()
with torch.cuda.device(0):
    fill[(1,)](data, rank + 1.0, BLOCK=128)
    torch.cuda.synchronize()
dist.barrier()
dist.destroy_process_group()
"""


def test_memory_that_a_handle_opens(tmp_path: Path) -> None:
    status, report = ranks(tmp_path, OPENED)
    assert (status, report["verdict"], report["findings"]) == (67, "incomplete", []), report
    assert any("memory of another process" in why for why in report["incomplete"]), report["incomplete"]
