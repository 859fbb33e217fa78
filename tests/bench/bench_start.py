"""The time that `consan run` adds to a program of one kernel, by the clock: plain, with warm caches, with empty ones.

    python tests/bench/bench_start.py [--device gpu|cpu] [--runs N]

`gpu`: one launch of the addition of launches.py, by Triton. `cpu`: a kernel by CuPy, which consan stands in for; there
is no plain run. Cold: the caches of consan and of Triton are empty folders. The files of consan are compiled before; `--uncompiled`:
as an interpreter that may not write them has them. Medians, and the seconds of the processor of all its processes.
"""

from __future__ import annotations

import argparse
import compileall
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
ON_GPU = """
import sys
sys.path.insert(0, {here!r})
from launches import add
launch, wait = add()
launch()
wait()
"""
ON_CPU = """
import sys
sys.path.insert(0, {here!r})
from launches import cupy
launch, wait = cupy()
launch()
"""


def timed(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, check=False)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr + done.stdout
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def caches(folder: str) -> dict[str, str]:
    """The caches of consan, of Triton and of the driver, in a folder."""
    return {"CONSAN_CACHE_DIR": f"{folder}/consan", "TRITON_CACHE_DIR": f"{folder}/triton", "CUDA_CACHE_PATH": f"{folder}/cuda"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--uncompiled", action="store_true")
    given = parser.parse_args()
    if not given.uncompiled:
        for folder in ("consan", "instrument", "reports"):
            compileall.compile_dir(ROOT / folder, quiet=1)
    program = (ON_GPU if given.device == "gpu" else ON_CPU).format(here=str(Path(__file__).parent))
    alone, checked = [sys.executable, "-c", program], [sys.executable, "-m", "consan", "run", "--device", given.device, "-c", program]
    ways = {"plain": alone, "consan run": checked} if given.device == "gpu" else {"consan run": checked}
    with tempfile.TemporaryDirectory() as kept:
        for words in ways.values():
            timed(words, caches(kept))
        for state in ("warm", "cold"):
            times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
            for _ in range(given.runs if state == "warm" else max(2, given.runs // 2)):
                for way, words in ways.items():
                    with tempfile.TemporaryDirectory() as fresh:
                        times[way].append(timed(words, caches(kept if state == "warm" else fresh)))
            for way, found in times.items():
                clock, processor = (statistics.median(each) for each in zip(*found, strict=True))
                print(f"{state}: {way}: {clock:.2f} s, {processor:.2f} s of the processor", flush=True)


if __name__ == "__main__":
    main()
