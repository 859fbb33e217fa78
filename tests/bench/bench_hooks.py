"""Where the work of the hooks goes: warp instructions of the virtual machine by function, for real kernels.

    python tests/bench/bench_hooks.py [--arch sm_90a] [--seed 1] [--steps 8] [--top 12] NAME ...

A warp that comes to a block of instructions in two parts counts twice, as it costs on a chip. Instructions a call are within a few per
cent of what Nsight Compute counts for the same functions on an H200 (tests/bench/RESULTS.md). How long they take is another question.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "real")]

import corpus  # noqa: E402
import hopper_cases  # noqa: E402
from real_cases import CASES, Case  # noqa: E402
from real_run import Buffers, entry_of  # noqa: E402

from consan.backends.cpu.engine import scheduler  # noqa: E402
from consan.session.planning.options import SessionOptions  # noqa: E402
from consan.session.session import Session  # noqa: E402

WARP = 32
_RUNS = ("plain_block", "count_block")  # of the scheduler: each block of each group goes through one of them
_MANGLED = re.compile(r"_consan_runtime_cu_[0-9a-f]{8}(\d+)(\w+)")


@dataclass
class Cost:
    """The calls of one function, in all warps."""

    instructions: int = 0
    lane_instructions: int = 0
    calls: int = 0


class Counter:
    """Counts what a scheduler runs while it is in place."""

    def __init__(self) -> None:
        self.costs: defaultdict[str, Cost] = defaultdict(Cost)
        self._patches = contextlib.ExitStack()

    def __enter__(self) -> Counter:
        """Count from here on."""
        for name in _RUNS:
            self._patches.enter_context(mock.patch.object(scheduler.Scheduler, name, self._counting(getattr(scheduler.Scheduler, name))))
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the scheduler as it was."""
        self._patches.close()

    def _counting(self, original: Any) -> Any:
        def run(scheduler: Any, group: Any, block: Any) -> None:
            self._count(group, block)
            original(scheduler, group, block)

        return run

    def _count(self, group: Any, block: Any) -> None:
        warps, cost = len(np.unique(group.lanes // WARP)), self.costs[block.function.code.name]
        cost.instructions += warps * block.size
        cost.lane_instructions += group.count * block.size
        cost.calls += warps * (block.code.start == 0)


def readable(name: str) -> str:
    """A function's name in the source."""
    found = _MANGLED.search(name)
    return found[2][: int(found[1])] if found else name


def measure(case: Case, arch: str, seed: int, top: int) -> None:
    """Print one kernel's table."""
    entry = corpus.get(f"{case.name}/{arch}")
    if entry.skip:
        print(f"{case.name}: {entry.skip}")
        return
    ptx, session, launch = entry.make(), Session(SessionOptions(device="cpu", seed=seed)), case.launch("small", 0)
    prepared, buffers, counter = session.prepare(ptx), Buffers(session.backend, launch), Counter()
    more: dict[str, Any] = {"shared": launch.shared, "cluster": launch.cluster, "cooperative": launch.cooperative}
    with counter:
        session.launch(prepared, entry_of(ptx, launch), launch.grid, launch.block, launch.pack(buffers.address), **more)
        report = session.report()
    total = sum(cost.instructions for cost in counter.costs.values())
    warps = int(np.prod(launch.grid)) * -(-int(np.prod(launch.block)) // WARP)
    print(f"{case.name}, seed {seed}: {report.verdict}, {total} warp instructions, {total // warps} a warp")
    for name, cost in sorted(counter.costs.items(), key=lambda item: -item[1].instructions)[:top]:
        lanes, each = cost.lane_instructions / max(cost.instructions, 1), cost.instructions / max(cost.calls, 1)
        print(f"  {readable(name)[:32]:32}{cost.instructions / total:7.1%}  {lanes:4.1f} lanes{cost.calls:9} calls{each:9.0f} each")


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Warp instructions of the hooks, by function, on the virtual machine.")
    parser.add_argument("names", nargs="+", metavar="NAME", help="a kernel of the corpus, as triton_hopper/matmul_3_stages")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--seed", type=int, default=1, help="the schedule; in 1 warps run ahead of each other, as on a chip")
    parser.add_argument("--steps", type=int, default=hopper_cases.STEPS, help="steps of K of Triton's and Gluon's Hopper kernels")
    parser.add_argument("--top", type=int, default=12, help="how many functions to list")
    options = parser.parse_args()
    hopper_cases.STEPS = options.steps
    cases = {case.name: case for case in (*hopper_cases.HOPPER_CASES, *hopper_cases.CLUSTER_CASES, *CASES)}
    unknown = [name for name in options.names if name not in cases]
    if unknown:
        parser.error(f"no such kernel: {', '.join(unknown)}")
    for name in options.names:
        measure(cases[name], options.arch, options.seed, options.top)
    return 0


if __name__ == "__main__":
    sys.exit(main())
