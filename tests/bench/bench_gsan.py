"""Triton's GSan beside consan: Triton kernels plain, under GSan, and recorded by consan without and with global memory, on one GPU.

    PYTHONPATH=tests:tests/real python tests/bench/bench_gsan.py [NAME ...]

Needs Triton 3.8 or later and PyTorch with a GPU. GSan chooses the memory of a whole process, so each cell comes from a process of its own.
Medians of 10 by CUDA events, behind a kernel that lets the host run ahead; plain = 1 in the same process. `on`: accesses that are proven
apart before the launch are not recorded; `all recorded`: without that proof. Columns of GSan: its launcher's own work in the stream is
part of its time. Memory: what a process has of the GPU's beyond the plain one, over the bytes of the arrays. All works are free of races;
what either tool finds is shown.
"""
# ruff: noqa: N803 - names as in Triton's tutorials

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

REPEATS = 10
AHEAD = 20_000_000  # clock ticks for which the stream is held: the host gets ahead
SECONDS = 120  # a process may take
WAYS = ("plain", "gsan", "consan")
HEAD = "| work | plain | GSan | GSan, memory | consan, off | consan, all recorded | consan, on | found (GSan; consan) |"


@triton.jit
def copy(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """A copy."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))


@triton.jit
def matmul(a, b, c, N: tl.constexpr, M: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
    """A product of N x N in tiles of M x M."""
    row, column = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * M + tl.arange(0, M)
    k = tl.arange(0, K)
    total = tl.zeros((M, M), tl.float32)
    for start in range(0, N, K):
        left = tl.load(a + row[:, None] * N + (start + k)[None, :])
        total += tl.dot(left, tl.load(b + (start + k)[:, None] * N + column[None, :]))
    tl.store(c + row[:, None] * N + column[None, :], total.to(tl.float16))


@triton.jit
def split_k(a, b, parts, count, c, N: tl.constexpr, M: tl.constexpr, K: tl.constexpr, SPLITS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same, its k split among programs; the last one adds the parts."""
    tile, split, across = tl.program_id(0), tl.program_id(1), N // M
    row, column = tile // across * M + tl.arange(0, M), tile % across * M + tl.arange(0, M)
    k = tl.arange(0, K)
    total = tl.zeros((M, M), tl.float32)
    for start in range(split * (N // SPLITS), (split + 1) * (N // SPLITS), K):
        left = tl.load(a + row[:, None] * N + (start + k)[None, :])
        total += tl.dot(left, tl.load(b + (start + k)[:, None] * N + column[None, :]))
    inside = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(parts + (tile * SPLITS + split) * M * M + inside, total)
    tl.debug_barrier()
    if tl.atomic_add(count + tile, 1, sem="acq_rel") == SPLITS - 1:
        total = tl.zeros((M, M), tl.float32)
        for number in range(SPLITS):
            total += tl.load(parts + (tile * SPLITS + number) * M * M + inside)
        tl.store(c + row[:, None] * N + column[None, :], total.to(tl.float16))
        tl.atomic_xchg(count + tile, 0, sem="relaxed")


@triton.jit
def histogram(values, counts, BLOCK: tl.constexpr, EACH: tl.constexpr):  # type: ignore[no-untyped-def]
    """Counters by relaxed atomics."""
    for number in range(EACH):
        at = (tl.program_id(0) * EACH + number) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(counts + tl.load(values + at), 1, sem="relaxed")


def _halves(n: int) -> Any:
    return torch.randn(n, n, device="cuda", dtype=torch.float16)


@dataclass(frozen=True)
class Work:
    """A kernel and its launch. `arrays`: made where they are needed. `small`: the grid of a launch that consan judges."""

    kernel: Any
    grid: tuple[int, int]
    small: tuple[int, int]
    arrays: Callable[[], list[Any]]
    constants: dict[str, int]
    warps: int = 4


WORKS = {
    "copy, 1 GB": Work(
        copy, (1 << 17, 1), (256, 1), lambda: [torch.ones(1 << 27, device="cuda"), torch.zeros(1 << 27, device="cuda")], {"BLOCK": 1024}
    ),
    "matmul 2048": Work(
        matmul, (16, 16), (2, 2), lambda: [_halves(2048), _halves(2048), _halves(2048)], {"N": 2048, "M": 128, "K": 32}, warps=8
    ),
    "split-K, 1024, 4 splits": Work(
        split_k,
        (256, 4),
        (4, 4),
        lambda: [
            *(_halves(1024), _halves(1024), torch.zeros(4 << 20, device="cuda")),
            *(torch.zeros(256, device="cuda", dtype=torch.int32), _halves(1024)),
        ],
        {"N": 1024, "M": 64, "K": 32, "SPLITS": 4},
    ),
    "histogram, 4,096 counters": Work(
        histogram,
        (1056, 1),
        (64, 1),
        lambda: [
            torch.randint(0, 4096, (1056 * 64 * 256,), device="cuda", dtype=torch.int32),
            torch.zeros(4096, device="cuda", dtype=torch.int32),
        ],
        {"BLOCK": 256, "EACH": 64},
    ),
}


def timed(launch: Callable[[], Any]) -> float:
    """Milliseconds of a launch."""
    launch()
    torch.cuda.synchronize()
    times = []
    for _ in range(REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(AHEAD)
        begin.record()
        launch()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def through_triton(work: Work) -> dict[str, Any]:
    """A launch as Triton makes it: plain, or under GSan."""
    arrays = work.arrays()
    ms = timed(lambda: work.kernel[work.grid](*arrays, num_warps=work.warps, **work.constants))
    free, everything = torch.cuda.mem_get_info()
    return {"ms": ms, "used": everything - free, "arrays": sum(array.nbytes for array in arrays), "found": "none"}


def gsan(work: Work) -> dict[str, Any]:
    """Under GSan, which aborts a kernel that races."""
    from triton.experimental.gsan import create_mem_pool

    triton.knobs.compilation.instrumentation_mode = "gsan"
    with torch.cuda.use_mem_pool(create_mem_pool()):
        return through_triton(work)


def consan(work: Work) -> dict[str, Any]:
    """The PTX that Triton has generated, recorded; plain from the same handle of the driver."""
    from bench_global import TRACE, Work as Launch, judged, pruned

    from consan.session.planning.options import SessionOptions
    from consan.session.planning.plan import PlannedLaunch, log_of
    from consan.session.session import Session

    arrays = work.arrays()
    compiled = work.kernel.warmup(*arrays, num_warps=work.warps, grid=work.grid, **work.constants)
    args = [array.data_ptr().to_bytes(8, "little") for array in arrays] + [bytes(8)] * 2  # and two pointers to scratch memory
    config: dict[str, Any] = {"grid": (*work.grid, 1), "block": (32 * work.warps, 1, 1), "shared": compiled.metadata.shared}
    entry, ptx, written = compiled.metadata.name, compiled.asm["ptx"], arrays[-1].nbytes
    made: dict[str, Any] = {}
    for name in ("off", "on"):
        session = Session(SessionOptions(device="gpu", engine="record", global_memory=name, trace_memory=TRACE))
        backend = session.backend

        def run(handle: Any, backend: Any = backend) -> float:
            return timed(lambda: backend.launch(handle, entry, args=args, **config))

        made.setdefault("ms", run(backend.load(ptx)))
        prepared = session.prepare(ptx, name=entry)
        launch = Launch(entry, config["grid"], config["block"], [], written, ptx=ptx, config=dict(config), args=args)
        forms = {name if name == "off" else "all": prepared}
        if name == "on":
            light, proof = pruned(session, prepared, launch)
            forms |= {"on": light} if proof else {}
        for label, form in forms.items():
            started = session.recording.start(
                session.device.logs, form, log_of(form, entry, PlannedLaunch(launch.grid, launch.block, (1, 1, 1)), session.options)
            )
            made[label] = run(form.loaded)
            started.free()
        if name == "on":
            launch.grid = (*work.small, 1)
            launch.config["grid"] = launch.grid
            made["found"] = " ".join(list(judged(session, launch))[1:])
    return made


def child(way: str, name: str) -> dict[str, Any]:
    """The measurements of a process of its own, or why there are none."""
    command, environment = [sys.executable, __file__, "--way", way, name], {**os.environ, "TRITON_ALWAYS_COMPILE": "1"}
    try:
        ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        return {"failed": f"took more than {SECONDS} s"}
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    told = (ran.stderr.strip().splitlines() or ["no output"])[-1]
    return json.loads(lines[-1]) if lines else {"failed": told[:200]}


def cells(name: str) -> Iterator[str]:
    """The row of a work."""
    plain, under, ours = (child(way, name) for way in WAYS)

    def times(measured: dict[str, Any], label: str, base: dict[str, Any]) -> str:
        if "failed" in measured:
            return str(measured["failed"])
        return f"{measured[label] / base.get('ms', math.nan):.2f}x" if label in measured else "the same"

    yield name
    yield f"{plain['ms']:.3f} ms" if "ms" in plain else str(plain["failed"])
    yield times(under, "ms", plain)
    yield f"{(under['used'] - plain['used']) / plain['arrays']:.1f} B/B" if "used" in under and "used" in plain else ""
    for label in ("off", "all", "on"):
        yield times(ours, label, ours)
    yield f"{under.get('found', 'failed')}; {ours.get('found', 'failed')}"


def main() -> None:
    """Print the table, or what one process has measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="part of a work's name")
    parser.add_argument("--way", choices=WAYS)
    options = parser.parse_args()
    if options.way:
        run = {"plain": through_triton, "gsan": gsan, "consan": consan}[options.way]
        print(json.dumps(run(WORKS[options.names[0]])))
        return
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, PyTorch {torch.__version__}, {Path(sys.executable).name}")
    print(f"{HEAD}\n{'|---' * (len(HEAD.split('|')) - 2)}|")
    for name in WORKS:
        if not options.names or any(part in name for part in options.names):
            print(f"| {' | '.join(cells(name))} |", flush=True)


if __name__ == "__main__":
    main()
