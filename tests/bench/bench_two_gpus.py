"""Times two ranks under torchrun on two GPUs, plain and checked: an all-reduce of 1 MiB by Triton, and a training step with 16 all-reduces.

    python tests/bench/bench_two_gpus.py [all-reduce] [changing] [step]

`changing`: the values are others in each turn. Each line has the first turn, the median of turns 2 to 50, and of those behind the first
four seconds, by the clock of rank 0.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SETTLES, LONGEST = 4.0, 8.0  # seconds of the turns that are no steady ones, and of all
PROGRAMS = ("all-reduce", "changing", "step")
LAYERS, WIDTH = 16, 512
QUIET = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}  # GPUs may be shared


def reduced(rank: int, *, changing: bool) -> Callable[[], Any]:
    """One all-reduce."""
    import rank_kernels_of_two as kernels
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm

    count = 1 << 18
    data = symm.empty(count, dtype=torch.float32, device="cuda")
    handle = symm.rendezvous(data, dist.group.WORLD)
    peer, out = handle.get_buffer(1 - rank, (count,), torch.float32), torch.empty(count, device="cuda")
    data.fill_(rank + 1)

    def turn() -> None:
        if changing:
            data.add_(1)
        handle.barrier()
        kernels.all_reduce[(count // 1024,)](data, peer, out, BLOCK=1024)
        handle.barrier()

    return turn


def trained() -> Callable[[], Any]:
    """A step with an all-reduce of each layer's gradient."""
    import rank_kernels_of_two as kernels
    import torch
    import torch.distributed as dist

    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False, device="cuda") for _ in range(LAYERS)]
    given = torch.randn(256, WIDTH, device="cuda")

    def turn() -> None:
        made = given
        for layer in layers:
            made = torch.relu(layer(made))
        made.square().mean().backward()
        for layer in layers:
            gradient = layer.weight.grad
            assert gradient is not None
            dist.all_reduce(gradient)
            kernels.step[(WIDTH * WIDTH // 1024,)](layer.weight.data, gradient, BLOCK=1024)
            layer.weight.grad = None

    return turn


def measured(what: str) -> None:
    """A rank of one program."""
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    dist.all_reduce(torch.ones(1, device="cuda"))
    turn = trained() if what == "step" else reduced(rank, changing=what == "changing")
    torch.cuda.synchronize()
    seconds, begun, goes = [], time.perf_counter(), torch.ones(1, device="cuda")
    while goes.item():
        start = time.perf_counter()
        turn()
        torch.cuda.synchronize()
        seconds.append((time.perf_counter() - begun, time.perf_counter() - start))
        if len(seconds) % 50 == 0:  # all ranks take as many turns
            goes.fill_(seconds[-1][0] < LONGEST)
            dist.broadcast(goes, 0)
    if rank == 0:
        early, late = [took for _, took in seconds[1:50]], [took for at, took in seconds if at > SETTLES]
        figures = (1e3 * value for value in (seconds[0][1], statistics.median(early), statistics.median(late)))
        print("{:9.2f}, {:8.3f}, {:8.3f} ms".format(*figures), f"of {len(seconds)} turns", flush=True)
    dist.destroy_process_group()


def main(wanted: list[str]) -> None:
    """Run each program plain and checked."""
    here = Path(__file__).resolve()
    for what in wanted or PROGRAMS:
        for how, words in (("plain", []), ("checked", ["-m", "consan", "run"])):
            torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(here), "rank", what]
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, *words, *torchrun], env={**os.environ, **QUIET}, capture_output=True, text=True, check=False, timeout=100
            )
            lines = [line for line in done.stdout.splitlines() if "turns" in line or "verdict" in line or "incomplete" in line]
            print(f"{what} {how}: {time.perf_counter() - start:.1f} s, status {done.returncode}", *lines, sep="\n  ", flush=True)
            if not lines:
                print(done.stdout[-2000:], done.stderr[-3000:])


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        measured(sys.argv[2])
    else:
        main(sys.argv[1:])
