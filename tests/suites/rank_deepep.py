"""DeepEP's dispatch within a node, two ranks on the virtual machine: a line for each fault.

    python tests/suites/rank_deepep.py CHECKOUT [--seeds 3] [--fault-seeds 1] [--only ROW] [--full]          needs nvcc

CHECKOUT is deepseek-ai/DeepEP. `notify_dispatch` counts tokens, `dispatch` sends them through rings in the memory of the receiver. Both are
compiled as they are, but for 256 threads a CTA. A fault is an edit of a copy. Nothing of the kernels is in this repository.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from rank_kernels import Code, WithStructs, pairs

sys.path.append(str(Path(__file__).resolve().parent.parent / "ranks"))
from crew_support import crew_of, run

from consan.reports.model import Report
from consan.session.session import Session

RANKS, TOKENS, WORDS, TOPK, EXPERTS, CTAS, SLOTS, CHUNK = 2, 8, 16, 2, 4, 2, 4, 2
THREADS: Final = 256
SENT: Final = 8192 * (THREADS // 32)  # bytes of shared memory
_FOLDER: Final = "csrc/kernels/legacy"
_NODE, _TOOLS = "intranode.cu", "utils.cuh"
_AS_IT_IS: Final = "as it is"
Edit = tuple[str, str, str]  # of a file: what is exchanged
SMALLER: Final[Edit] = (_NODE, "constexpr int kNumThreads = 768;", f"constexpr int kNumThreads = {THREADS};")
_LAST: Final = "    __syncthreads();\n}\n\n__forceinline__ __device__ int atomic_cas_cta_acquire"
_HEAD: Final = "(channel_head_idx.buffer()"
MENDED: Final[tuple[Edit, ...]] = (
    (_TOOLS, "    if constexpr (not kSyncOnly) {", "    {"),
    (_TOOLS, _LAST, f"    memory_fence();\n{_LAST}"),
    (_TOOLS, '"ld.global.nc.L1::no_allocate.L2::256B"', '"ld.volatile.global"'),
    (_NODE, "tma_load_1d(tma_buffer", 'asm volatile("fence.proxy.async;" ::: "memory"); tma_load_1d(tma_buffer'),
    (_NODE, f"ld_volatile_global{_HEAD}", f"ld_acquire_sys_global{_HEAD}"),
    (_NODE, f"st_relaxed_sys_global{_HEAD}", f"st_release_sys_global{_HEAD}"),
    (_NODE, "    // Clean unused `recv_topk_idx` as -1", "    tma_store_wait<0>();\n    // Clean unused `recv_topk_idx` as -1"),
)
_JOIN: Final = 'asm volatile("bar.sync %0, %1;" ::"r"(responsible_rank), "r"(num_threads_per_rank));\n'
FAULTS: Final[Mapping[str, tuple[Edit, ...]]] = {
    "tail without a release": ((_NODE, "st_release_sys_global(channel_tail_idx", "st_relaxed_sys_global(channel_tail_idx"),),
    "tail without an acquire": ((_NODE, "ld_acquire_sys_global(channel_tail_idx", "ld_volatile_global(channel_tail_idx"),),
    "tail of .gpu scope": ((_TOOLS, "st.release.sys.global.s32", "st.release.gpu.global.s32"),),
    "tail before other warps": ((_NODE, f"{_JOIN}            if (send_warp_id_in_rank == 0", "            if (send_warp_id_in_rank == 0"),),
    "slots released too early": ((_NODE, f"st_release_sys_global{_HEAD}", f"st_relaxed_sys_global{_HEAD}"),),
    "no proxy fence": ((_NODE, 'asm volatile("fence.proxy.async;" ::: "memory"); ', ""),),
    "barriers without an acquire": ((_TOOLS, f"    memory_fence();\n{_LAST}", _LAST),),
}
ROWS: Final = {_AS_IT_IS: (SMALLER,), "mended": (SMALLER, *MENDED), **{row: (SMALLER, *MENDED, *edits) for row, edits in FAULTS.items()}}


def compiled(checkout: Path, row: str, into: Path) -> str:
    """The PTX of the kernels."""
    shutil.copytree(checkout / "csrc", into / "csrc")
    for file, old, new in ROWS[row]:
        path = into / _FOLDER / file
        if old not in (text := path.read_text()):
            raise SystemExit(f"{file}: {row}: no {old!r}")
        path.write_text(text.replace(old, new))
    folders = (".", "..", "../..", str(checkout / "deep_ep/include"))
    command = ["nvcc", "-ptx", "-arch=sm_90a", "-lineinfo", "-std=c++17", "--expt-relaxed-constexpr", *(f"-I{each}" for each in folders)]
    subprocess.run([*command, _NODE, "-o", "kernels.ptx"], check=True, cwd=into / _FOLDER)
    return (into / _FOLDER / "kernels.ptx").read_text()


def _sender(session: Session, ptx: str) -> Callable[..., None]:
    entries = [line.split("(")[0].split()[-1] for line in ptx.splitlines() if ".entry" in line]

    def send(kernel: str, ctas: int, threads: int, shared: int, parameters: Sequence[tuple[str, Any]]) -> None:
        entry = next(each for each in entries if kernel in each)
        types = {f"argument{number}": kind for number, (kind, _) in enumerate(parameters)}
        source = SimpleNamespace(signature=types, fn=SimpleNamespace(arg_names=list(types)))
        how = SimpleNamespace(
            name=kernel, num_warps=threads // 32, num_ctas=1, shared=shared, global_scratch_size=0, global_scratch_align=1
        )
        launcher = WithStructs(SimpleNamespace(session=session), source, how)
        launcher(ctas, 1, 1, 0, Code(entry, ptx), None, how, None, None, *(value for _, value in parameters))

    return send


def dispatch(session: Session, ptx: str) -> bool:
    """The program of a rank: each token goes to both. Whether all have come."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm_mem

    def zeros(count: int, kind: str = "int32") -> Any:
        return torch.zeros(count, dtype=getattr(torch, kind))

    rank, send, channels = dist.get_rank(), _sender(session, ptx), CTAS // 2
    buffer, signals = symm_mem.empty(1 << 15, dtype=torch.uint8), symm_mem.empty(64, dtype=torch.int32)
    data, flags = (symm_mem.rendezvous(each, dist.group.WORLD) for each in (buffer, signals))
    chosen, prefix = torch.ones(TOKENS * RANKS, dtype=torch.uint8), zeros(RANKS * channels)
    words = TOKENS * WORDS
    values, found, places = torch.full((words,), rank + 1, dtype=torch.int32), zeros(RANKS * words), zeros(RANKS * TOKENS)
    experts = torch.tensor([0, EXPERTS // RANKS] * TOKENS, dtype=torch.int64)
    weights, scales = torch.full((TOKENS * TOPK,), 0.5, dtype=torch.float32), zeros(4, "float32")
    some, integer, buffers = "*i32", "i32", ("u64", data.buffer_ptrs_dev)
    counts = [(some, torch.tensor([TOKENS] * RANKS, dtype=torch.int32)), (some, zeros(1))]
    counts += [(some, torch.tensor([TOKENS] * EXPERTS, dtype=torch.int32)), (some, zeros(EXPERTS))]
    sizes = [(integer, each) for each in (EXPERTS, TOKENS, channels)]
    given = [("*u8", chosen), (some, prefix), (some, zeros(RANKS * RANKS)), (integer, channels * RANKS * 4), (integer, 1)]
    ends = [buffers, ("u64", flags.buffer_ptrs_dev), (integer, rank)]
    send(f"notify_dispatchILi{RANKS}E", 1 + RANKS, 128, 0, [*counts, *sizes, *given, *ends])
    got = [(some, found), ("*fp32", scales), (some, places), ("*i64", zeros(RANKS * TOKENS * TOPK, "int64"))]
    got += [("*fp32", zeros(RANKS * TOKENS * TOPK, "float32")), (some, zeros(RANKS * channels)), (some, zeros(TOKENS * RANKS))]
    sent = [(some, values), ("*fp32", scales), ("*i64", experts), ("*fp32", weights), ("*u8", chosen), (some, prefix)]
    sizes = [(integer, each) for each in (TOKENS, 0, WORDS // 4, TOPK, EXPERTS, 0, 0, 0)]
    ends = [buffers, *((integer, each) for each in (rank, CHUNK, SLOTS))]
    send(f"8dispatchILi{RANKS}ELi{THREADS}E", CTAS, THREADS, SENT, [*got, *sent, *sizes, *ends])
    data.barrier()
    expected = np.repeat(np.arange(1, RANKS + 1), words)
    return bool((np.asarray(found) == expected).all() and (np.asarray(places) == [*range(TOKENS)] * RANKS).all())


def checked(ptx: str, seed: int) -> tuple[Report, bool]:
    """The report of a run, and whether all tokens have come."""
    right: list[bool] = []
    with crew_of(RANKS, seed=seed) as (crew, session):
        failed = [each for each in run(crew, lambda: right.append(dispatch(session, ptx))) if each is not None]
        if failed:
            raise failed[0]
        return session.report(), all(right)


def main() -> None:
    """Run the program, as it is and with each fault."""
    parser = argparse.ArgumentParser(description="DeepEP's dispatch within a node")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--fault-seeds", type=int, default=1)
    parser.add_argument("--only", action="append", choices=ROWS)
    parser.add_argument("--full", action="store_true", help="the report of the first seed")
    given = parser.parse_args()
    for row in given.only or ROWS:
        with tempfile.TemporaryDirectory() as folder:
            ptx = compiled(given.checkout.resolve(), row, Path(folder))
            reports = [checked(ptx, seed) for seed in range(given.fault_seeds if row in FAULTS else given.seeds)]
        verdicts = Counter(report.verdict for report, _ in reports)
        kinds = Counter(pair for report, _ in reports for pair in set(pairs(report)))
        print(f"{row:28} {dict(verdicts)} {dict(kinds)} wrong: {sum(not right for _, right in reports)}", flush=True)
        if given.full:
            print(reports[0][0], flush=True)


if __name__ == "__main__":
    main()
