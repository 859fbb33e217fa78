"""Public kernels in CUDA C++ that reach into other ranks' memory, on the virtual machine: a line for each program and fault.

    python tests/suites/rank_kernels.py SUITE HEADER [--seeds 10] [--full]          needs nvcc

SUITE is a name in `SUITES`; HEADER is its file in a checkout. The kernels are compiled as they are; two ranks launch them in one process.
A fault is an edit of a copy of the header. Nothing of the kernels is in this repository.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from consan.adapters.triton.host import HostMemory
from consan.adapters.triton.launcher import Code, Launcher
from consan.adapters.triton.parameters import Leaf
from consan.launching.placement import Placement
from consan.ranks.crew import current
from consan.reports.model import Report
from consan.session.session import Session

sys.path.append(str(Path(__file__).resolve().parent.parent / "ranks"))
from crew_support import crew_of, run

RANKS, CTAS, WARPS, ROUNDS = 2, 2, 2, 2
COUNT: Final = CTAS * WARPS * 32 * 4  # floats: four a thread
FILL: Final = 'extern "C" __global__ void fill(float *mine, float *values) { int i = blockIdx.x * blockDim.x + threadIdx.x; ' + (
    "for (int k = 4 * i; k < 4 * i + 4; k++) mine[k] = values[k]; }\n"
)
_STRUCT, _TRTLLM_WORDS = "struct", 112
_AS_IT_IS: Final = "as it is"
_STANDARD: Final = "#include <array>\n#include <cstdint>\n#include <stdexcept>\n"


@dataclass
class Rank:
    """The functions of a program of one rank. `send` launches a kernel with types and values of its parameters."""

    number: int
    data: Any
    signals: Any
    peers: list[int]
    peers_signals: list[int]
    table: int
    meet: Callable[[], None]
    send: Callable[[str, Sequence[tuple[str, Any]]], None]
    values: Any
    out: Any

    def fill(self) -> None:
        """A launch that writes the rank's symmetric buffer."""
        self.send("fill", [("*fp32", self.data), ("*fp32", self.values)])


class WithStructs(Launcher):
    """Passes structs of words by value; words that are addresses of symmetric memory become those of the copies."""

    def values(self, found: Sequence[Leaf], memory: HostMemory, placement: Placement, of: str = "") -> Iterator[bytes]:
        """The bytes of each parameter."""
        crew = current()
        assert crew is not None
        for leaf in found:
            if leaf.type != _STRUCT:
                yield from super().values([leaf], memory, placement, of)
                continue
            words = [memory.address(each) if crew.memory.is_address(each) else each for each in leaf.value]
            yield np.array(words, np.uint64).tobytes()


def struct(*parts: Sequence[int], count: int) -> tuple[str, tuple[int, ...]]:
    """A struct of `count` words; zeros follow the given ones."""
    words = [word for part in parts for word in part]
    return _STRUCT, (*words, *[0] * (count - len(words)))


def pointers(found: Sequence[int], count: int) -> list[int]:
    """An array of so many pointers."""
    return [*found, *[0] * (count - len(found))]


def _vllm(stage: str, *, apart: bool) -> Callable[[Rank], None]:
    """Fill and all-reduce, in rounds; `apart`: all ranks meet on the host before and behind each."""

    def program(rank: Rank) -> None:
        for _ in range(ROUNDS):
            rank.fill()
            if apart:
                rank.meet()
            numbers = [("i32", rank.number), ("i32", COUNT // 4)]
            rank.send(
                stage, [("u64", rank.table), struct(rank.peers_signals, count=8), ("*u8", rank.signals), ("*fp32", rank.out), *numbers]
            )
            if apart:
                rank.meet()
        rank.meet()

    return program


def _trtllm(rank: Rank, *, halves: int = 2) -> None:
    """All-reduce with two buffers in turn; the kernel copies its input to one of them."""
    for flag in range(1, ROUNDS + 2):
        at = flag % halves * COUNT * 4
        sizes = [COUNT, COUNT // RANKS, COUNT // CTAS, 0, RANKS, rank.number, flag]
        places = [rank.peers_signals, [each + 4096 for each in rank.peers_signals], [each + at for each in rank.peers]]
        data = [int(rank.out.data_ptr()), int(rank.values.data_ptr())]
        rank.send("oneShotAllReduceKernel", [struct(sizes, *(pointers(each, 16) for each in places), data, count=_TRTLLM_WORDS)])
    rank.meet()


Edit = tuple[str, str]


@dataclass(frozen=True)
class Suite:
    """A header: what comes before it, the kernels that are made of its templates, programs, and edits of its text.

    `mended`: what makes it free of races by the ISA. `faults`: one synchronisation of the mended text is left out, or has another scope.
    """

    kernels: str
    programs: Mapping[str, Callable[[Rank], None]]
    mended: tuple[Edit, ...]
    faults: Mapping[str, Edit]
    before: str = _STANDARD
    include: int = 0  # how many folders above the header's own one are those of its includes

    def edits(self) -> dict[str, tuple[Edit, ...]]:
        """By row: what is exchanged."""
        return {_AS_IT_IS: (), "mended": self.mended, **{name: (*self.mended, edit) for name, edit in self.faults.items()}}


def _programs() -> dict[str, Callable[[Rank], None]]:
    return {
        f"{stage}, {'host barriers' if apart else 'back to back'}": _vllm(f"cross_device_reduce_{stage}", apart=apart)
        for stage in ("1stage", "2stage")
        for apart in (True, False)
    }


def _of_vllm(signal: str) -> str:
    parameters = f"(vllm::RankData*, vllm::RankSignals, {signal}*, float*, int, int);\n"
    return "".join(f"template __global__ void vllm::cross_device_reduce_{stage}<float, 2>{parameters}" for stage in ("1stage", "2stage"))


def _barriers(start: str, middle: str, end: str) -> dict[str, Edit]:
    """Each barrier of the kernels is left out."""
    places = {"no barrier at the start": start, "no barrier in the middle": middle, "no barrier at the end": end}
    return {name: (f"  {call}(sg, self_sg, rank);", "") for name, call in places.items()}


_ACQUIRED: Final[tuple[Edit, ...]] = (("st_flag_volatile(peer", "st_flag_release(peer"), ("ld_flag_volatile(self", "ld_flag_acquire(self"))
_SCOPES: Final[Mapping[str, Edit]] = {
    "release of .gpu scope": ("st.release.sys", "st.release.gpu"),
    "acquire of .gpu scope": ("ld.acquire.sys", "ld.acquire.gpu"),
}
_FENCE: Final = "__threadfence_system();"
_TRTLLM: Final = "flashinfer::trtllm_allreduce::"
SUITES: Final[Mapping[str, Suite]] = {
    "vllm": Suite(
        _of_vllm("vllm::Signal"),
        _programs(),
        (*_ACQUIRED, ("if constexpr (!final_sync) __syncthreads();", "__syncthreads();")),
        _barriers("barrier_at_start<ngpus>", "barrier_at_end<ngpus>", "barrier_at_end<ngpus, true>") | _SCOPES,
    ),
    "vllm-2024": Suite(
        _of_vllm("volatile vllm::Signal"),
        _programs(),
        (
            ("    sg.signals[threadIdx.x]->", f"    {_FENCE} sg.signals[threadIdx.x]->"),
            ("start[blockIdx.x][threadIdx.x]);", f"start[blockIdx.x][threadIdx.x]); {_FENCE}"),
            ("end[blockIdx.x][threadIdx.x]);", f"end[blockIdx.x][threadIdx.x]); {_FENCE}"),
        ),
        _barriers("start_sync<ngpus>", "end_sync<ngpus>", "end_sync<ngpus, true>") | {"fences of .gpu scope": (_FENCE, "__threadfence();")},
    ),
    "flashinfer-vllm": Suite(
        _of_vllm("vllm::Signal"),
        _programs(),
        _ACQUIRED,
        _barriers("multi_gpu_barrier<ngpus, true>", "multi_gpu_barrier<ngpus, false, true>", "multi_gpu_barrier<ngpus, false>") | _SCOPES,
    ),
    "flashinfer-trtllm": Suite(
        f"template __global__ void {_TRTLLM}oneShotAllReduceKernel<float, 2, true, false>({_TRTLLM}AllReduceParams<float>);\n",
        {"one shot": _trtllm, "one shot, one buffer": lambda rank: _trtllm(rank, halves=1)},
        (("    block_barrier(params.peer_barrier_ptrs_in,", "    __syncthreads(); block_barrier(params.peer_barrier_ptrs_in,"),),
        {
            "no barrier": (
                "    __syncthreads(); block_barrier(params.peer_barrier_ptrs_in,",
                "    if (tidx < 0) block_barrier(params.peer_barrier_ptrs_in,",
            ),
            "release of .gpu scope": ("st.global.release.sys", "st.global.release.gpu"),
            "acquire of .gpu scope": ("ld.global.acquire.sys", "ld.global.acquire.gpu"),
        },
        _STANDARD + "#define FLASHINFER_LOGGING_H_\n",
        include=2,
    ),
}


def compiled(suite: Suite, header: Path, row: str, into: Path) -> str:
    """The PTX of the suite's kernels, and of the launch that fills a buffer."""
    text = header.read_text()
    for old, new in suite.edits()[row]:
        if old not in text:
            raise SystemExit(f"{header}: {row}: no {old!r}")
        text = text.replace(old, new)
    (into / header.name).write_text(text)
    (into / "kernels.cu").write_text(f'{suite.before}#include "{header.name}"\n{suite.kernels}{FILL}')
    folders = [header.parent, header.parents[suite.include]]
    command = ["nvcc", "-ptx", "-arch=sm_90a", "-lineinfo", "-std=c++17", "--expt-relaxed-constexpr", *(f"-I{each}" for each in folders)]
    subprocess.run([*command, "kernels.cu", "-o", "kernels.ptx"], check=True, cwd=into)
    return (into / "kernels.ptx").read_text()


def _sender(session: Session, ptx: str) -> Callable[[str, Sequence[tuple[str, Any]]], None]:
    entries = [line.split("(")[0].split()[-1] for line in ptx.splitlines() if ".entry" in line]

    def send(kernel: str, parameters: Sequence[tuple[str, Any]]) -> None:
        entry = next(each for each in entries if kernel in each)
        types = {f"argument{number}": kind for number, (kind, _) in enumerate(parameters)}
        source = SimpleNamespace(signature=types, fn=SimpleNamespace(arg_names=list(types)))
        metadata = SimpleNamespace(name=kernel, num_warps=WARPS, num_ctas=1, shared=0, global_scratch_size=0, global_scratch_align=1)
        launcher = WithStructs(SimpleNamespace(session=session), source, metadata)
        launcher(CTAS, 1, 1, 0, Code(entry, ptx), None, metadata, None, None, *(value for _, value in parameters))

    return send


def checked(program: Callable[[Rank], None], ptx: str, seed: int) -> tuple[Report, bool]:
    """The report of a program, and whether the sums of all ranks are right."""
    right: list[bool] = []

    def body() -> None:
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symm_mem

        number = dist.get_rank()
        data, values, out = (symm_mem.empty(2 * COUNT, dtype=torch.float32) for _ in range(3))
        signals = symm_mem.empty(1 << 14, dtype=torch.uint8)
        handle, flags = (symm_mem.rendezvous(each, dist.group.WORLD) for each in (data, signals))
        peers = list(handle.buffer_ptrs), list(flags.buffer_ptrs), handle.buffer_ptrs_dev
        rank = Rank(number, data, signals, *peers, handle.barrier, _sender(session, ptx), values, out)
        values.fill_(number + 1)
        program(rank)
        right.append(bool((np.asarray(out)[:COUNT] == RANKS * (RANKS + 1) / 2).all()))

    with crew_of(RANKS, seed=seed) as (crew, session):
        failed = [each for each in run(crew, body) if each is not None]
        if failed:
            raise failed[0]
        return session.report(), all(right)


def pairs(report: Report) -> Iterator[str]:
    for finding in report.findings:
        yield f"{finding.kind} ({finding.situation})"


def main() -> None:
    """Run the programs of a suite, as they are and with each fault."""
    parser = argparse.ArgumentParser(description="Public kernels of several ranks")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("header", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--fault-seeds", type=int, default=3)
    parser.add_argument("--only", action="append", help="rows")
    parser.add_argument("--full", action="store_true", help="the report of the first seed that has findings")
    given = parser.parse_args()
    suite = SUITES[given.suite]
    for row in given.only or suite.edits():
        seeds = given.fault_seeds if row in suite.faults else given.seeds
        with tempfile.TemporaryDirectory() as folder:
            ptx = compiled(suite, given.header.resolve(), row, Path(folder))
            for name, program in suite.programs.items():
                reports = [checked(program, ptx, seed) for seed in range(seeds)]
                verdicts = Counter(report.verdict for report, _ in reports)
                kinds = Counter(pair for report, _ in reports for pair in set(pairs(report)))
                wrong = sum(not right for _, right in reports)
                print(f"{row:26} {name:22} {dict(verdicts)} {dict(kinds)} wrong sums: {wrong}", flush=True)
                found = next((report for report, _ in reports if report.verdict != "clean"), None)
                if given.full and found is not None:
                    print(found, flush=True)


if __name__ == "__main__":
    main()
