"""Programs of two ranks for torch and Triton, racy and right: for two GPUs under torchrun, and for the virtual machine with `--ranks 2`.

Flags stand in the signal pads behind the words that torch's own barriers use and leave at 0.
"""

from __future__ import annotations

BEGIN = """
import torch, torch.distributed as dist, torch.distributed._symmetric_memory as symm, triton, triton.language as tl
"""
CREW = """
dist.init_process_group("nccl")
rank = dist.get_rank(); torch.cuda.set_device(rank)
"""

# An all-reduce in place, in one shot, with flags before and behind the reads.
FLAGS = (
    BEGIN
    + '''
SEND = """{
    .reg .pred %p; .reg .u32 %me;
    mov.u32 %me, %tid.x;
    setp.eq.u32 %p, %me, 0;
    @%p st.release.sys.global.u32 [$1], $2;
    mov.u32 $0, 0;
}"""
WAIT = """{
    .reg .pred %p; .reg .u32 %me, %seen;
    mov.u32 %me, %tid.x;
    setp.ne.u32 %p, %me, 0;
    @%p bra done;
    again: ld.acquire.sys.global.u32 %seen, [$1];
    setp.lt.u32 %p, %seen, $2;
    @%p bra again;
    done: mov.u32 $0, 0;
}"""

@triton.jit
def meet(pads, value, RANK: tl.constexpr, SEND: tl.constexpr, WAIT: tl.constexpr):
    pads = pads.to(tl.pointer_type(tl.uint64))
    tl.debug_barrier()
    there = tl.load(pads + (1 - RANK)) + (256 + RANK) * 4
    tl.inline_asm_elementwise(SEND, "=r,l,r", [there, value], tl.uint32, False, 1)
    here = tl.load(pads + RANK) + (257 - RANK) * 4
    tl.inline_asm_elementwise(WAIT, "=r,l,r", [here, value], tl.uint32, False, 1)
    tl.debug_barrier()

@triton.jit
def all_reduce(mine, values, peer, pads, RANK: tl.constexpr, COUNT: tl.constexpr, SEND: tl.constexpr, WAIT: tl.constexpr):
    i = tl.arange(0, COUNT)
    tl.store(mine + i, tl.load(values + i))
    meet(pads, 1, RANK, SEND, WAIT)  # start
    total = tl.load(mine + i) + tl.load(peer + i)
    meet(pads, 2, RANK, SEND, WAIT)  # end
    tl.store(mine + i, total)
'''
    + CREW
    + """
data = symm.empty(256, dtype=torch.float32, device="cuda")
handle = symm.rendezvous(data, dist.group.WORLD)
values = torch.full((256,), rank + 1.0, device="cuda")
handle.barrier()
all_reduce[(1,)](data, values, handle.get_buffer(1 - rank, (256,), torch.float32), handle.signal_pad_ptrs_dev, rank, 256, SEND, WAIT)
handle.barrier()
RESULT
dist.destroy_process_group()
"""
).replace("RESULT", "assert (data == 3).all()")

START, END = "    meet(pads, 1, RANK, SEND, WAIT)  # start\n", "    meet(pads, 2, RANK, SEND, WAIT)  # end\n"
# The part that is left out or changed, and the exit status on the virtual machine.
FAULTS: dict[str, tuple[tuple[str, str], int]] = {
    "repaired": (("", ""), 0),
    "no start barrier": ((START, ""), 66),
    "no end barrier": ((END, ""), 66),
    "scope of one GPU": ((".sys", ".gpu"), 66),
    "relaxed flag": (("st.release", "st.relaxed"), 66),
}


def flags(fault: str) -> str:
    """The all-reduce with a fault. Its sums may be wrong then."""
    (old, new), status = FAULTS[fault]
    assert old in FLAGS
    return FLAGS.replace(old, new).replace("assert (data == 3).all()", "" if status else "assert (data == 3).all()")


# Each rank writes the buffer of the other one, and reads its own.
PUT = (
    BEGIN
    + """
@triton.jit
def put(peer, value, BLOCK: tl.constexpr):
    tl.store(peer + tl.arange(0, BLOCK), value)

@triton.jit
def take(data, out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), tl.load(data + tl.arange(0, BLOCK)))
"""
    + CREW
    + """
data = symm.empty(128, device="cuda", dtype=torch.float32)
handle = symm.rendezvous(data, dist.group.WORLD)
peer = handle.get_buffer(1 - rank, (128,), torch.float32)
out, token = torch.empty(128, device="cuda"), torch.ones(1, device="cuda")
side, here = torch.cuda.Stream(), torch.cuda.current_stream()
dist.all_reduce(token)
torch.cuda.synchronize()
dist.barrier()
put[(1,)](peer, float(rank), BLOCK=128)
BETWEEN
take[(1,)](data, out, BLOCK=128)
torch.cuda.synchronize()
dist.destroy_process_group()
"""
)

# The operations between the launches, and whether it orders them.
ORDERS: dict[str, tuple[str, bool]] = {
    "dist.barrier": ("dist.barrier()", True),
    "barrier of a handle": ("handle.barrier()", True),
    "all-reduce": ("dist.all_reduce(token)", True),
    "signals": ("handle.put_signal(1 - rank); handle.wait_signal(1 - rank)", True),
    "broadcasts of both": ("dist.broadcast(token, 0); dist.broadcast(token, 1)", True),
    "events of a side stream": (
        "side.wait_event(here.record_event())\n"
        "with torch.cuda.stream(side): handle.barrier(); met = side.record_event()\n"
        "here.wait_event(met)",
        True,
    ),
    "collective that is waited for": ("work = dist.all_reduce(token, async_op=True); work.wait()", True),
    "nothing": ("pass", False),
    "barrier in another stream": ("with torch.cuda.stream(side): handle.barrier()", False),
    "no event behind the barrier": (
        "side.wait_event(here.record_event())\nwith torch.cuda.stream(side): handle.barrier()",
        False,
    ),
    "no event before the barrier": ("with torch.cuda.stream(side): handle.barrier()\nhere.wait_stream(side)", False),
    "broadcast of one": ("dist.broadcast(token, 0)", False),
    "one signal": ("if rank: handle.put_signal(0)\nelse: handle.wait_signal(1)", False),
}


def order(name: str) -> str:
    """The two launches of each rank with what stands between them."""
    return PUT.replace("BETWEEN", ORDERS[name][0])
