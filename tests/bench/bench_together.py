"""The replay of CTAs that wait for each other: processor time and memory, by the number of CTAs.

    python tests/bench/bench_together.py [KERNEL ...] [--ctas N ...]

Each kernel of together.cu is run once on the virtual machine, which records it; then its replay is timed, in both of its orders.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

import consan
from consan.checker.compiled import build
from consan.checker.judging import grid, recorder

SOURCE = Path(__file__).with_name("together.cu")
KERNELS = {"last_block": 32, "grid_barrier": 32, "turns": 32, "look_back": 256}  # threads of a CTA
HEAD = "| kernel | CTAs | warps | lane events | processor time | peak memory |\n|---|---|---|---|---|---|"


def measure(entry: str, ctas: int) -> str:
    """A line of the table."""
    threads, lines, check = KERNELS[entry], [], grid.check_grid

    def timed(*args: Any, **more: Any) -> Any:
        build.library()
        begin = time.process_time()
        done = check(*args, **more)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        lines.append(
            f"| {entry} | {ctas:,} | {ctas * threads // 32:,} | {done[0].events:,} | {time.process_time() - begin:.1f} s | {peak:,} MiB |"
        )
        return done

    recorder.check_grid = timed  # type: ignore[assignment]
    args = [np.zeros(2 * ctas * threads, np.uint32), np.zeros(2 * ctas * threads, np.uint32), np.zeros(2 * ctas + 64, np.uint32)]
    kernel = consan.Kernel(SOURCE.read_text(), entry)
    report = consan.launch(kernel, ctas, threads, args, device="cpu", global_memory="on", cooperative=entry == "grid_barrier")
    return "\n".join(lines) if report.verdict == "clean" else f"{entry}, {ctas} CTAs: {report.verdict}\n{report}"


def main() -> None:
    """Print the table. Each row has a process of its own, so that its memory is its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kernels", nargs="*", default=list(KERNELS))
    parser.add_argument("--ctas", type=int, nargs="+", default=[512, 1024, 2048])
    options = parser.parse_args()
    print(HEAD, flush=True)
    for entry in options.kernels:
        for ctas in options.ctas:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.apply(measure, (entry, ctas)), flush=True)


if __name__ == "__main__":
    main()
