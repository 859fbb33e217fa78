"""What `consan run ./app` adds to loading, beyond instrumentation: a process, and a module, with the cache warm and a made-up driver.

    python tests/bench/bench_native.py [ROUNDS]

A process: a program that loads one module and launches once, with consan's server, less the same program alone. A module: what each of
20 more costs. Every module is another text, so none is in the server's memory, and all are in the cache on disk. The best of the rounds:
the machine may be busy. Also the time of both processes on a processor, what a launch costs that does what one before has done, and what a
call costs that orders streams (two for each `edge` of the program: an event is recorded, and waited for).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "native"))
from native_case import Case, build, options, recordings

from consan.native import calls
from consan.options import INLINE, RECORD

MODULES, LAUNCHES, EDGES = 20, 20_000, 4_000

QUIET = {"FAKE_CUDA_RING": "", "FAKE_CUDA_LOG": ""}  # no finding, and the driver writes down no call


@dataclass(frozen=True)
class Cost:
    """Milliseconds by the clock, and on a processor in this process and its children."""

    clock: float
    processor: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.clock - other.clock, self.processor - other.processor)


def main(rounds: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        case = build(Path(folder))
        more = [Path(folder, f"{number}.ptx") for number in range(MODULES)]
        for number, path in enumerate(more):
            path.write_text(Path(case.image("clean")).read_text() + f"\n// {number}\n")
        words = ["asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel"]
        for engine in (INLINE, RECORD):
            steps = (words, [*words, *map(str, more)], [*words, *["again"] * LAUNCHES])
            one, modules, launches = [added(case, each, rounds, engine) for each in steps]
            module, launch = modules - one, launches - one
            call = of_calls(case, [*words, "synchronize", "stream1", "again"], rounds, engine)
            print(f"{engine}: a process {one.clock:.1f} ms, on a processor {one.processor:.1f} ms")
            print(f"{engine}: a module {module.clock / MODULES:.2f} ms, on a processor {module.processor / MODULES:.2f} ms")
            print(f"{engine}: a launch {launch.clock / LAUNCHES * 1e3:.1f} us, on a processor {launch.processor / LAUNCHES * 1e3:.1f} us")
            print(f"{engine}: a call {call.clock / EDGES * 500:.1f} us, on a processor {call.processor / EDGES * 500:.1f} us")


def added(case: Case, words: list[str], rounds: int, engine: str) -> Cost:
    """What consan adds to a run of the program."""
    given = {**os.environ, **case.environment, **QUIET}
    asked = options(engine=engine)
    with recordings(case.folder):
        case.run(*words, given=asked, **QUIET)  # fills the cache
        checked = best(lambda: case.run(*words, given=asked, **QUIET), rounds)
    return checked - best(lambda: subprocess.run([case.folder / "program", *words], env=given, check=False), rounds)


def of_calls(case: Case, words: list[str], rounds: int, engine: str) -> Cost:
    """The cost of calls that order streams. A made-up CUPTI reports them."""
    before, calls.libraries = calls.libraries, lambda: iter([str(case.folder / "libcupti.so")])
    try:
        return added(case, [*words, *["edge"] * EDGES, "again"], rounds, engine) - added(case, [*words, "again"], rounds, engine)
    finally:
        calls.libraries = before


def best(run: Callable[[], object], rounds: int) -> Cost:
    """The least of each time."""
    costs = [measured(run) for _ in range(rounds)]
    return Cost(min(cost.clock for cost in costs), min(cost.processor for cost in costs))


def measured(run: Callable[[], object]) -> Cost:
    """The times of one call."""
    clock, processor = time.perf_counter(), on_processor()
    run()
    return Cost((time.perf_counter() - clock) * 1e3, (on_processor() - processor) * 1e3)


def on_processor() -> float:
    """Seconds so far, of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
