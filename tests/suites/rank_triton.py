"""Public Triton kernels on torch's symmetric memory, two ranks on the virtual machine: a line for each program and fault.

    python tests/suites/rank_triton.py kraken CHECKOUT [--seeds 10]          needs torch (CPU) and Triton
    python tests/suites/rank_triton.py recipes CHECKOUT

CHECKOUT is meta-pytorch/kraken, or yifuwang/symm-mem-recipes. `consan run --ranks 2` runs this file again for each line. A fault is an
edit of a copy. Nothing of the kernels is in this repository.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

COUNT, BLOCK, WARPS, ROUNDS = 512, 256, 2, 2
_AS_IT_IS: Final = "as it is"
Edit = tuple[str, str, str]  # of a file: what is exchanged


def _fill(data: Any, value: int) -> None:
    """A launch that writes a symmetric buffer."""
    import triton
    import triton.language as tl

    @triton.jit
    def fill(into, value, size: tl.constexpr):
        i = tl.program_id(0) * size + tl.arange(0, size)
        tl.store(into + i, value.to(tl.bfloat16))

    fill[(COUNT // BLOCK,)](data, float(value), BLOCK, num_warps=WARPS)


def _ranks() -> tuple[Any, Any, Any]:
    """A symmetric buffer, its handle, and values of the rank."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm_mem

    dist.init_process_group("nccl")
    data = symm_mem.empty(COUNT, dtype=torch.bfloat16, device="cuda")
    handle = symm_mem.rendezvous(data, dist.group.WORLD)
    return data, handle, torch.full((COUNT,), float(handle.rank + 1), dtype=torch.bfloat16, device="cuda")


def _without_measurements(checkout: Path) -> None:
    """Packages whose modules are imported one by one, and none for what they measure with: it needs a GPU's bindings."""
    for name in ("kraken", "kraken.comm", "kraken.fused"):
        package: Any = types.ModuleType(name)
        package.__path__ = [str(checkout / name.replace(".", "/"))]
        sys.modules.setdefault(name, package)
    for name in ("kraken._logging", "symm_mem_recipes.utils"):
        stub: Any = types.ModuleType(name)
        stub.benchmark_with_profiler = None
        sys.modules.setdefault(name, stub)
    sys.path.insert(0, str(checkout))


def one_shot() -> Any:
    """kraken: a launch fills the buffer, another one sums up."""
    from kraken.comm.one_shot_all_reduce import one_shot_all_reduce

    data, handle, _ = _ranks()
    for _ in range(ROUNDS):
        _fill(data, handle.rank + 1)
        out = one_shot_all_reduce(data, num_warps=WARPS, BLOCK_SIZE=BLOCK)
    handle.barrier()
    return out


def one_shot_later() -> Any:
    """kraken: the same, and in the first round the hosts wait for each other before the sum: only the second can lack an order."""
    from kraken.comm.one_shot_all_reduce import one_shot_all_reduce

    data, handle, _ = _ranks()
    for number in range(ROUNDS):
        _fill(data, handle.rank + 1)
        if number == 0:
            handle.barrier()
        out = one_shot_all_reduce(data, num_warps=WARPS, BLOCK_SIZE=BLOCK)
    handle.barrier()
    return out


def one_shot_bias() -> Any:
    """kraken: the kernel copies its input to the buffer, and adds a bias."""
    import torch
    from kraken.fused.one_shot_all_reduce_bias import one_shot_all_reduce_bias

    data, handle, values = _ranks()
    out = torch.empty_like(values)
    for _ in range(ROUNDS):
        one_shot_all_reduce_bias(data, values, None, out, BLOCK_SIZE=BLOCK)
    handle.barrier()
    return out


def two_shot() -> Any:
    """kraken: the kernel of its two-shot all-reduce; the host function needs a workspace, which is not served."""
    import torch
    from kraken.comm.two_shot_all_reduce import two_shot_all_reduce_kernel

    _, handle, values = _ranks()
    out, places = torch.empty_like(values), (handle.rank, handle.world_size)
    for _ in range(ROUNDS):
        two_shot_all_reduce_kernel[(COUNT // BLOCK,)](
            handle.buffer_ptrs_dev, handle.signal_pad_ptrs_dev, values, out, COUNT, BLOCK, *places, BLOCK // 2, num_warps=WARPS
        )
    handle.barrier()
    return out


def recipes_one_shot() -> Any:
    """symm-mem-recipes: a launch fills the buffer, the next one sums up."""
    import torch
    from symm_mem_recipes.triton_one_shot_all_reduce import one_shot_all_reduce_kernel

    data, handle, values = _ranks()
    out = torch.empty_like(values)
    for _ in range(ROUNDS):
        _fill(data, handle.rank + 1)
        one_shot_all_reduce_kernel[(COUNT // BLOCK,)](
            handle.buffer_ptrs_dev, handle.signal_pad_ptrs_dev, out, COUNT, handle.rank, handle.world_size, BLOCK // 8, 8, num_warps=WARPS
        )
        handle.barrier()
    return out


@dataclass(frozen=True)
class Suite:
    """A checkout: its programs with their faults by the texts that they exchange, and what makes all free of races by the ISA."""

    programs: Mapping[Callable[[], Any], Mapping[str, tuple[Edit, ...]]]
    mended: tuple[Edit, ...] = ()


_BARRIER: Final = "kraken/_ptx_utils/symm_mem_barrier.py"
_SENT, _WAITED = "atom.global.{sem}.sys", "atom.global.sys.{sem}"
_ALL: Final[Mapping[str, tuple[Edit, ...]]] = {
    "signals of .gpu scope": ((_BARRIER, _SENT, "atom.global.{sem}.gpu"), (_BARRIER, _WAITED, "atom.global.gpu.{sem}")),
}
_BOTH, _LAST, _FIRST = (
    "hasPreviousMemAccess=True,\n        hasSubsequentMemAccess=True",
    "hasPreviousMemAccess=True",
    "hasSubsequentMemAccess=True",
)
_START: Final = """    ptx_utils.symm_mem_sync(
        signal_pad_ptrs, None, rank, world_size, hasSubsequentMemAccess=True
    )
"""
_RECIPES: Final = "symm_mem_recipes/triton_barrier.py"
SUITES: Final[Mapping[str, Suite]] = {
    "kraken": Suite(
        {
            one_shot: {
                "no barrier at the start": (("kraken/comm/one_shot_all_reduce.py", f"world_size, {_FIRST}", f"1, {_FIRST}"),),
                "no barrier at the end": (("kraken/comm/one_shot_all_reduce.py", f"world_size, {_LAST}", f"1, {_LAST}"),),
                **_ALL,
            },
            one_shot_later: {"no barrier at the start (2)": (("kraken/comm/one_shot_all_reduce.py", _START, ""),)},
            one_shot_bias: {
                "no barrier in the middle": (
                    ("kraken/fused/one_shot_all_reduce_bias.py", f"world_size,\n        {_BOTH}", f"1,\n        {_BOTH}"),
                ),
                "no barrier at the end": (
                    ("kraken/fused/one_shot_all_reduce_bias.py", f"world_size,\n        {_LAST},\n    )", f"1,\n        {_LAST},\n    )"),
                ),
                **_ALL,
            },
            two_shot: {
                "no barrier in the middle (2)": (
                    ("kraken/comm/two_shot_all_reduce.py", f"world_size,\n        {_BOTH}", f"1,\n        {_BOTH}"),
                ),
                "no barrier at the end": (
                    ("kraken/comm/two_shot_all_reduce.py", f"world_size,\n        {_LAST},\n    )", f"1,\n        {_LAST},\n    )"),
                ),
                **_ALL,
            },
        },
        (
            (_BARRIER, '"release" if hasPreviousMemAccess else "relaxed"', '"release"'),
            (_BARRIER, '"acquire" if hasSubsequentMemAccess else "relaxed"', '"acquire"'),
        ),
    ),
    "recipes": Suite(
        {
            recipes_one_shot: {
                "no barrier at the start": (
                    (
                        "symm_mem_recipes/triton_one_shot_all_reduce.py",
                        "    blockwise_barrier(signal_pad_ptrs, None, rank, world_size)\n",
                        "",
                    ),
                ),
                "signals of .gpu scope": ((_RECIPES, "release.sys", "release.gpu"), (_RECIPES, "acquire.sys", "acquire.gpu")),
            }
        },
        ((_RECIPES, "[local_signal_pad_addr + remote_rank]", "[local_signal_pad_addr + block_id * WORLD_SIZE + remote_rank]"),),
    ),
}


def run_once(program: str, folder: Path, seed: int) -> tuple[int, str]:
    command = [sys.executable, "-m", "consan", "run", "--ranks", "2", "--device", "cpu", "--seed", str(seed)]
    done = subprocess.run([*command, __file__, "--rank", program, str(folder)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def show_row(row: str, program: str, checkout: Path, edits: tuple[Edit, ...], seeds: int) -> None:
    with tempfile.TemporaryDirectory() as into:
        folder = shutil.copytree(checkout, Path(into) / "copy", ignore=shutil.ignore_patterns(".git"))
        for file, old, new in edits:
            text = (folder / file).read_text()
            if old not in text:
                raise SystemExit(f"{file}: {row}: no {old!r}")
            (folder / file).write_text(text.replace(old, new))
        found = [run_once(program, folder, seed) for seed in range(seeds)]
    codes = Counter(code for code, _ in found)
    print(f"{row:30} {program:18} exit codes: {dict(codes)}", flush=True)
    shown = next((text for code, text in found if code), None)
    if shown is not None:
        print(shown, flush=True)


def main() -> None:
    """Run a suite, or a program as one of its ranks."""
    parser = argparse.ArgumentParser(description="Public Triton kernels of several ranks")
    parser.add_argument("--rank", action="store_true")
    parser.add_argument("name")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--fault-seeds", type=int, default=3)
    given = parser.parse_args()
    if given.rank:
        _without_measurements(given.checkout)
        out = globals()[given.name]()
        print(f"{int((out != 3).sum())} of {COUNT} sums are wrong")
        return
    suite = SUITES[given.name]
    for program, faults in suite.programs.items():
        rows = {_AS_IT_IS: (), "mended": suite.mended, **{name: (*suite.mended, *edits) for name, edits in faults.items()}}
        for row, edits in rows.items():
            show_row(row, program.__name__, given.checkout.resolve(), edits, given.seeds if row == _AS_IT_IS else given.fault_seeds)


if __name__ == "__main__":
    main()
