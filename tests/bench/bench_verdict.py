"""The processor time from a launch's compact logs to its findings, on the virtual machine: to compute the logs, and all of it.

    PYTHONPATH=tests:tests/real python tests/bench/bench_verdict.py [--off]

`cp_async_pipeline` of 2,000 tiles in one CTA, medians of five. `--off`: without global memory.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import corpus
import numpy as np
from real_cases import CASES

from consan.backends.virtual import VirtualBackend
from consan.checker.judging.collected import LaunchedKernel
from consan.checker.judging.recorder import check
from consan.checker.judging.starting import start
from consan.checker.logs.expand import VirtualExpander
from consan.checker.logs.memory import LogMemory
from consan.instrument.record import record

KERNEL, MOST = "nvrtc/cp_async_pipeline", 4 << 30
COMPUTED: list[float] = []  # seconds


def timed(run: Callable[..., Any]) -> Callable[..., Any]:
    """The same, and its time is noted."""

    def noted(*given: Any) -> Any:
        begin = time.thread_time()
        done = run(*given)
        COMPUTED.append(time.thread_time() - begin)
        return done

    return noted


def main() -> None:
    """Print the medians."""
    recorded = record(corpus.get(f"{KERNEL}/sm_80").make(), global_races="--off" not in sys.argv, leaves=True, compact=True)
    made = next(case for case in CASES if case.name == KERNEL).launch("full", 0)
    memory = LogMemory(VirtualBackend())
    backend = memory.backend
    handle, places = backend.load(recorded.ptx), {id(each): int(backend.alloc(each.nbytes)) for each in made.buffers()}
    for each in made.buffers():
        backend.write(places[id(each)], np.ascontiguousarray(each))
    given, launched = made.pack(lambda array: places[id(array)]), LaunchedKernel(0, 0, made.grid, made.block)
    VirtualExpander.expand = timed(VirtualExpander.expand)  # type: ignore[method-assign]
    seconds, computing = list[float](), list[float]()
    for _ in range(5):
        launch = start(memory, handle, recorded, launched, MOST, machine=VirtualBackend)
        backend.launch(handle, recorded.entries[0], made.grid, made.block, given, shared=made.shared)
        COMPUTED.clear()
        begin = time.process_time()
        checked = check(launch, recorded, launched, {})
        seconds.append(time.process_time() - begin)
        computing.append(sum(COMPUTED))
        launch.free()
    found = f"{len(checked.found)} findings, {checked.tally.events:,} lane events"
    times = f"{statistics.median(seconds):.2f} s, {statistics.median(computing):.2f} s of it to compute {len(COMPUTED)} logs"
    print(f"{KERNEL}: {times}; {found}")


if __name__ == "__main__":
    main()
