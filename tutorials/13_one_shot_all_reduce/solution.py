"""A one-shot all-reduce in place: each rank puts its values into a symmetric buffer, sums those of all ranks, and stores the sum there."""

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import triton
import triton.language as tl

COUNT = 256

SEND = "st.release.sys.global.u32 [$1], $2; mov.u32 $0, 0;"
WAIT = """{
    .reg .pred %p; .reg .u32 %seen;
    again: ld.acquire.sys.global.u32 %seen, [$1];
    setp.lt.u32 %p, %seen, $2;
    @%p bra again;
    mov.u32 $0, 0;
}"""


@triton.jit
def barrier(signal_pads, rank: tl.constexpr, world: tl.constexpr, value, send: tl.constexpr, wait: tl.constexpr):
    """All ranks come to a value. Word k of a rank's signal pad is what rank k has told it."""
    pads = signal_pads.to(tl.pointer_type(tl.uint64))
    tl.debug_barrier()
    for peer in tl.static_range(world):
        there = tl.load(pads + peer) + rank * 4
        tl.inline_asm_elementwise(send, "=r,l,r", [there, value], tl.uint32, False, 1)
    for peer in tl.static_range(world):
        here = tl.load(pads + rank) + peer * 4
        tl.inline_asm_elementwise(wait, "=r,l,r", [here, value], tl.uint32, False, 1)
    tl.debug_barrier()


@triton.jit
def all_reduce(
    mine, values, buffers, signal_pads, rank: tl.constexpr, world: tl.constexpr, count: tl.constexpr, send: tl.constexpr, wait: tl.constexpr
):
    i = tl.arange(0, count)
    tl.store(mine + i, tl.load(values + i))
    barrier(signal_pads, rank, world, 1, send, wait)
    total = tl.zeros((count,), tl.float32)
    for peer in tl.static_range(world):
        total += tl.load(buffers[peer] + i)
    barrier(signal_pads, rank, world, 2, send, wait)
    tl.store(mine + i, total)


dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank)
data = symm_mem.empty(COUNT, dtype=torch.float32, device="cuda")
handle = symm_mem.rendezvous(data, dist.group.WORLD)
buffers = tuple(handle.get_buffer(peer, (COUNT,), torch.float32) for peer in range(world))
values = torch.full((COUNT,), float(rank + 1), dtype=torch.float32, device="cuda")

handle.barrier()
all_reduce[(1,)](data, values, buffers, handle.signal_pad_ptrs_dev, rank, world, COUNT, SEND, WAIT)
handle.barrier()

if rank == 0:
    print(f"{int((data != world * (world + 1) / 2).sum())} of {COUNT} numbers are wrong")
dist.destroy_process_group()
