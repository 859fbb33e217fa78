"""Seeds a second of `consan stress` on the CPU: in this process, with 1 and 2 processes, and on a local Dask cluster of 2 workers.

    python tests/bench/bench_stress.py [SEEDS]

Two kernels: a race of two warps in a few instructions, and the flaky multicast of tutorial 6. Each worker has done some runs before the
clock starts, so that starting Python, compiling the runtime and preparing the kernel (given beside it) do not count. Results must be
the same wherever the runs are done.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "stress"))
from stress_support import FLAKY

from consan.toolchain.nvrtc import compile_ptx
from consan.triage.executors import DASK, Workers
from consan.triage.outcome import Job, Outcome, Request
from consan.triage.subject import KernelSource, KernelSubject, LaunchText

MULTICAST = Path(__file__).parents[2] / "tutorials" / "06_flaky_multicast" / "exercise.cu"
SCALES = ("f32[64]=random", "f32[256]=random", "f32[128]=zeros", "i32=4")


def jobs() -> dict[str, Job]:
    """What is run."""
    launch = LaunchText("exchange", (1, 1, 1), (64, 1, 1), args=("i32[64]=arange", "i32[64]=zeros"))
    exchange = KernelSubject(KernelSource("flaky.cu"), launch)
    multicast = KernelSubject(KernelSource(str(MULTICAST)), LaunchText("scaled_sum", (2, 1, 1), (64, 1, 1), args=SCALES))
    return {
        "race of two warps": Job(exchange, compile_ptx(FLAKY, name="flaky.cu", arch="sm_90a").ptx),
        "flaky multicast, 2 CTAs": Job(multicast, compile_ptx(MULTICAST.read_text(), name=str(MULTICAST), arch="sm_90a").ptx),
    }


@contextlib.contextmanager
def places() -> Iterator[dict[str, Workers]]:
    """Where it is run."""
    found = {"this process": Workers(0), "1 process": Workers(1), "2 processes": Workers(2)}
    try:
        from distributed import LocalCluster
    except ImportError:
        print("Dask is not installed: no figures for it")
        yield found
        return
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        yield {**found, "Dask, 2 workers": Workers(0, cluster.scheduler_address.replace("tcp://", DASK))}


def measure(workers: Workers, job: Job, seeds: int) -> tuple[float, float, float, list[Outcome]]:
    """Seconds until all workers have done some runs, seeds a second after that, processor seconds of a run, and the outcomes."""
    begun = time.perf_counter()
    with workers:
        for _ in workers.results(job, [Request(0)] * 8 * max(workers.count, 1)):
            pass
        ready = time.perf_counter()
        found = dict(workers.results(job, [Request(seed) for seed in range(1, seeds + 1)]))
        done = time.perf_counter()
    processor = statistics.median(outcome.processor for outcome in found.values())
    return ready - begun, seeds / (done - ready), processor, [replace(found[i], seconds=0.0, processor=0.0) for i in range(seeds)]


def main(seeds: int) -> None:
    """The table."""
    print(f"{seeds} seeds, load {os.getloadavg()[0]:.1f} before")
    for name, job in jobs().items():
        expected = None
        with places() as where:
            for place, workers in where.items():
                started, speed, processor, outcomes = measure(workers, job, seeds)
                expected = expected or outcomes
                same = "" if outcomes == expected else ", OTHER RESULTS"
                cost = f"{1000 * processor:.0f} ms of a processor each"
                print(f"{name}, {place}: {speed:.1f} seeds a second ({cost}), ready after {started:.1f} s{same}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
