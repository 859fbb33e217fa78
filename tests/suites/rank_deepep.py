"""DeepEP's dispatch and combine within a node, two ranks on the virtual machine: a line for each fault.

    python tests/suites/rank_deepep.py CHECKOUT [--seeds 3] [--fault-seeds 1] [--only ROW] [--full]          needs nvcc

CHECKOUT is deepseek-ai/DeepEP. `notify_dispatch` counts tokens, `dispatch` sends them through rings in the memory of the receiver,
`cached_notify_combine` clears the rings, `combine` sends the tokens back and adds them. All are compiled as they are, but for 256 threads a
CTA. Faults of `combine` are the rows "sums". A fault is an edit of a copy. Nothing of the kernels is in this repository.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from rank_kernels import Code, WithStructs, pairs

sys.path.append(str(Path(__file__).resolve().parent.parent / "ranks"))
from crew_support import crew_of, run

from consan.reports.model import Report
from consan.session.session import Session

RANKS, TOKENS, WORDS, TOPK, EXPERTS, CTAS, SLOTS, CHUNK = 2, 12, 128, 2, 4, 2, 8, 2
THREADS: Final = 256
SOME, INTEGER = "*i32", "i32"
_FOLDER: Final = "csrc/kernels/legacy"
_NODE, _TOOLS = "intranode.cu", "utils.cuh"
_AS_IT_IS: Final = "as it is"
Edit = tuple[str, str, str]  # of a file: what is exchanged
SMALLER: Final[tuple[Edit, ...]] = (
    (_NODE, "constexpr int kNumThreads = 768;", f"constexpr int kNumThreads = {THREADS};"),
    *(("launch.cuh", f"case_macro({kind}{ranks});", "break;") for kind in ("", "dtype, ") for ranks in (4, 8)),
)
_LAST: Final = "    __syncthreads();\n}\n\n__forceinline__ __device__ int atomic_cas_cta_acquire"
_HEAD: Final = "(channel_head_idx.buffer()"
_TAIL, _MOVED = "ld_acquire_sys_global(channel_tail_idx_ptr)", "(channel_head_idx_ptr, last_head = min_head)"
_FENCE: Final = "__threadfence_block();"
_HANDED: Final = f"{_FENCE} channel_tail_idx[lane_id] = tail;"
_READ: Final = f"__syncwarp(); {_FENCE}"
_BOUNDED: Final = "expected_head >= 0 and channel_tail_idx[lane_id] <= expected_head"
MENDED: Final[tuple[Edit, ...]] = (
    (_TOOLS, "    if constexpr (not kSyncOnly) {", "    {"),
    (_TOOLS, _LAST, f"    memory_fence();\n{_LAST}"),
    (_TOOLS, '"ld.global.nc.L1::no_allocate.L2::256B"', '"ld.volatile.global"'),
    (_NODE, "tma_load_1d(tma_buffer", 'asm volatile("fence.proxy.async;" ::: "memory"); tma_load_1d(tma_buffer'),
    (_NODE, f"ld_volatile_global{_HEAD}", f"ld_acquire_sys_global{_HEAD}"),
    (_NODE, f"st_relaxed_sys_global{_HEAD}", f"st_release_sys_global{_HEAD}"),
    (_NODE, "    // Clean unused `recv_topk_idx` as -1", "    tma_store_wait<0>();\n    // Clean unused `recv_topk_idx` as -1"),
    (_NODE, f"channel_tail_idx[lane_id] = {_TAIL};", f"int tail = {_TAIL}; {_HANDED}"),
    (_NODE, "channel_tail_idx[lane_id] <= expected_head and expected_head >= 0", _BOUNDED),
    (_NODE, "__syncwarp();\n\n                // Broadcast", f"{_FENCE} __syncwarp();\n\n                // Broadcast"),
    (_NODE, "// Update head", f"{_READ} // Update head\n"),
    (_NODE, f"st_relaxed_sys_global{_MOVED}", f"{{ {_FENCE} st_release_sys_global{_MOVED}; }}"),
    (_NODE, "// Retired", "tma_store_wait<0>(); // Retired\n"),
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
_RETURNED: Final = "(channel_tail_idx.buffer(), current_channel_tail_idx)"
_SENDERS: Final = 'asm volatile("bar.sync %0, %1;" ::"r"(send_rank_id), "r"(num_threads_per_rank));'
_MEET: Final = "        barrier_block<kNumRanks>(barrier_signal_ptrs, rank);\n"
_ELSE: Final = "    } else {\n        const auto channel_id"
COMBINE_FAULTS: Final[Mapping[str, tuple[Edit, ...]]] = {
    "sums: tail without a release": ((_NODE, f"st_release_sys_global{_RETURNED}", f"st_relaxed_sys_global{_RETURNED}"),),
    "sums: tail without an acquire": ((_NODE, _TAIL, _TAIL.replace("acquire_sys", "volatile")),),
    "sums: tail handed on, no fence": ((_NODE, _HANDED, _HANDED.removeprefix(_FENCE)),),
    "sums: tail before other warps": ((_NODE, _SENDERS, ""),),
    "sums: slots released too early": ((_NODE, f"st_release_sys_global{_MOVED}", f"st_relaxed_sys_global{_MOVED}"),),
    "sums: head handed on, no fence": ((_NODE, f"{_READ} // Update head", "// Update head"),),
    "sums: queues cleared too late": ((_NODE, f"{_MEET}{_ELSE}", _ELSE),),
}
_MADE: Final = (*SMALLER, *MENDED)
ROWS: Final = {_AS_IT_IS: SMALLER, "mended": _MADE, **{row: (*_MADE, *edits) for row, edits in {**FAULTS, **COMBINE_FAULTS}.items()}}


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


@dataclass(frozen=True)
class Node:
    """Values that all launches of a rank share: `data` and `flags` are handles of symmetric memory."""

    rank: int
    send: Callable[..., None]
    data: Any
    flags: Any
    values: Any
    weights: Any

    def ends(self) -> list[tuple[str, Any]]:
        """The buffers of all ranks, and the place of this one."""
        return [("u64", self.data.buffer_ptrs_dev), (INTEGER, self.rank)]


def _zeros(count: int, kind: str = "int32") -> Any:
    import torch

    return torch.zeros(count, dtype=getattr(torch, kind))


def _words(value: int) -> int:
    """Two numbers in bfloat16, in one word."""
    return int(np.float32(value).view(np.uint32)) >> 16 | int(np.float32(value).view(np.uint32))


def node(session: Session, ptx: str) -> Node:
    """A rank with its tokens and its symmetric memory."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm_mem

    rank = dist.get_rank()
    buffer, signals = symm_mem.empty(1 << 15, dtype=torch.uint8), symm_mem.empty(64, dtype=torch.int32)
    data, flags = (symm_mem.rendezvous(each, dist.group.WORLD) for each in (buffer, signals))
    values = torch.full((TOKENS * WORDS,), _words(rank + 1), dtype=torch.int32)
    return Node(rank, _sender(session, ptx), data, flags, values, torch.full((TOKENS * TOPK,), 0.5, dtype=torch.float32))


@dataclass(frozen=True)
class Handle:
    """Results of dispatch that combine reads."""

    values: Any
    places: Any
    weights: Any
    offsets: Any
    heads: Any
    prefix: Any

    def right(self) -> bool:
        """Whether all tokens have come."""
        expected = np.repeat([_words(rank + 1) for rank in range(RANKS)], TOKENS * WORDS)
        return bool((np.asarray(self.values) == expected).all() and (np.asarray(self.places) == [*range(TOKENS)] * RANKS).all())


def dispatch(node: Node) -> Handle:
    """Each token goes to both ranks."""
    import torch

    channels = CTAS // 2
    chosen, prefix, matrix = torch.ones(TOKENS * RANKS, dtype=torch.uint8), _zeros(RANKS * channels), _zeros(RANKS * RANKS)
    experts, scales = torch.tensor([0, EXPERTS // RANKS] * TOKENS, dtype=torch.int64), _zeros(4, "float32")
    counts = [(SOME, torch.tensor([TOKENS] * RANKS, dtype=torch.int32)), (SOME, _zeros(1))]
    counts += [(SOME, torch.tensor([TOKENS] * EXPERTS, dtype=torch.int32)), (SOME, _zeros(EXPERTS))]
    sizes = [(INTEGER, each) for each in (EXPERTS, TOKENS, channels)]
    given = [("*u8", chosen), (SOME, prefix), (SOME, matrix), (INTEGER, channels * RANKS * 4), (INTEGER, 1)]
    buffers, number = node.ends()
    ends = [buffers, ("u64", node.flags.buffer_ptrs_dev), number]
    node.send(f"15notify_dispatchILi{RANKS}E", 1 + RANKS, 128, 0, [*counts, *sizes, *given, *ends])
    found = Handle(
        _zeros(RANKS * TOKENS * WORDS),
        _zeros(RANKS * TOKENS),
        _zeros(RANKS * TOKENS * TOPK, "float32"),
        *(_zeros(RANKS * channels), _zeros(TOKENS * RANKS), matrix),
    )
    got = [(SOME, found.values), ("*fp32", scales), (SOME, found.places), ("*i64", _zeros(RANKS * TOKENS * TOPK, "int64"))]
    got += [("*fp32", found.weights), (SOME, found.offsets), (SOME, found.heads)]
    sent = [(SOME, node.values), ("*fp32", scales), ("*i64", experts), ("*fp32", node.weights), ("*u8", chosen), (SOME, prefix)]
    sizes = [(INTEGER, each) for each in (TOKENS, 0, WORDS // 4, TOPK, EXPERTS, 0, 0, 0)]
    ends = [*node.ends(), *((INTEGER, each) for each in (CHUNK, SLOTS))]
    node.send(f"8dispatchILi{RANKS}ELi{THREADS}E", CTAS, THREADS, 8192 * THREADS // 32, [*got, *sent, *sizes, *ends])
    return found


def combine(node: Node, handle: Handle) -> bool:
    """The tokens come back, and their ranks add them. Whether all sums are right."""
    channels = CTAS // 2
    buffers, number = node.ends()
    sizes = [(INTEGER, each) for each in (channels, TOKENS, channels * RANKS * 2)]
    ends = [buffers, (SOME, handle.heads), *sizes, ("u64", node.flags.buffer_ptrs_dev), number]
    node.send(f"21cached_notify_combineILi{RANKS}E", 1 + channels, 128, 0, ends)
    sums, weights = _zeros(TOKENS * WORDS), _zeros(TOKENS * TOPK, "float32")
    values = [(SOME, sums), ("*fp32", weights), (SOME, handle.values), ("*fp32", handle.weights), ("u64", 0), ("u64", 0)]
    values += [(SOME, each) for each in (handle.places, handle.prefix, handle.offsets, handle.heads)]
    values += [(INTEGER, each) for each in (RANKS * TOKENS, TOKENS, 2 * WORDS, TOPK)]
    ends = [*node.ends(), *((INTEGER, each) for each in (CHUNK, SLOTS))]
    node.send(f"7combineI13__nv_bfloat16Li{RANKS}ELi{THREADS}E", CTAS, THREADS, 4096 * THREADS // 32, [*values, *ends])
    node.data.barrier()
    return bool((np.asarray(sums) == _words(RANKS * (node.rank + 1))).all() and (np.asarray(weights) == 0.5).all())


def program(session: Session, ptx: str, *, back: bool) -> bool:
    """The program of a rank; `back`: with combine. Whether its results are right."""
    place = node(session, ptx)
    handle = dispatch(place)
    if back:
        return combine(place, handle) and handle.right()
    place.data.barrier()
    return handle.right()


def checked(ptx: str, seed: int, *, back: bool) -> tuple[Report, bool]:
    """The report of a run, and whether all results are right."""
    right: list[bool] = []
    with crew_of(RANKS, seed=seed) as (crew, session):
        failed = [each for each in run(crew, lambda: right.append(program(session, ptx, back=back))) if each is not None]
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
            reports = [
                checked(ptx, seed, back=row not in FAULTS)
                for seed in range(given.fault_seeds if row in {*FAULTS, *COMBINE_FAULTS} else given.seeds)
            ]
        verdicts = Counter(report.verdict for report, _ in reports)
        kinds = Counter(pair for report, _ in reports for pair in set(pairs(report)))
        print(f"{row:28} {dict(verdicts)} {dict(kinds)} wrong: {sum(not right for _, right in reports)}", flush=True)
        if given.full:
            print(reports[0][0], flush=True)


if __name__ == "__main__":
    main()
