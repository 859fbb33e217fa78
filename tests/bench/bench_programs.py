"""Programs built by nvcc, each alone and under `consan run`, all at a time: exit status, verdict, findings, launches, seconds.

    python tests/bench/bench_programs.py FOLDER OUTPUT [OPTION...]

FOLDER: the programs below, those that are there. OUTPUT: a folder for the reports. OPTION: of `consan run` (`--assembly fast` without any).
The programs are built on any machine with nvcc, for `-gencode arch=compute_90a,code=compute_90a -lineinfo -std=c++17
--expt-relaxed-constexpr --expt-extended-lambda`, and stripped:

    cutlass48   CUTLASS examples/48_hopper_warp_specialized_gemm (include, tools/util/include and examples/common, and cuRAND's headers)
    flash3      tests/bench/flash3.cu (flash-attention's hopper, CUTLASS's include; -DNDEBUG and each FLASHATTENTION_DISABLE_*)
    cub_*       CCCL cub/test/catch2_test_block_*.cu, c2h/*.cu and Catch2 (-DC2H_HAS_CURAND=0 -DCATCH_CONFIG_PREFIX_ALL), a variant each
    sample_*    NVIDIA/compute-sanitizer-samples: Racecheck, Synccheck, Initcheck (of global memory: consan does not look for that)

They check their results and tell by their status.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ARGUMENTS = {"cutlass48": ("--m=1024", "--n=1024", "--k=512", "--iterations=1"), "flash3": ()}
CUB = ("reduce", "shuffle", "histogram", "difference", "scan", "radix")
SAMPLES = ("block_error", "warp_error", "divergent_threads", "illegal_syncwarp", "memset_error")
LONGEST, LONGEST_PLAIN = 170, 20  # seconds


def main(folder: Path, output: Path, options: list[str]) -> None:
    """Print a line for each program."""
    output.mkdir(parents=True, exist_ok=True)
    arguments = ARGUMENTS | {f"cub_{name}": () for name in CUB} | {f"sample_{name}": () for name in SAMPLES}
    programs = {name: [str(folder.resolve() / name), *words] for name, words in arguments.items() if (folder / name).exists()}
    alone = {name: timed(words, output / f"{name}.plain", LONGEST_PLAIN) for name, words in programs.items()}
    with ThreadPoolExecutor(len(programs) or 1) as pool:
        done = pool.map(lambda name: (name, checked(name, programs[name], output, options)), programs)
        for name, told in done:
            print(f"{name}: plain status {alone[name][0]}, {alone[name][1]:.1f} s; {told}", flush=True)


def timed(words: list[str], log: Path, longest: int = LONGEST) -> tuple[int | str, float]:
    """The status of a command, or that it was ended, and its seconds. What it prints goes to the log."""
    begun = time.perf_counter()
    with log.open("w") as file, subprocess.Popen(words, stdout=file, stderr=file, start_new_session=True) as process:
        try:
            status: int | str = process.wait(longest)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # consan's program, too
            status = f"ended after {longest} s"
    return status, time.perf_counter() - begun


def checked(name: str, words: list[str], output: Path, options: list[str]) -> str:
    """What consan says about a program."""
    report = output / f"{name}.json"
    command = [sys.executable, "-m", "consan", "run", "-o", str(report.resolve()), *options, *words]
    status, seconds = timed(command, output / f"{name}.log")
    if not report.exists():
        return f"under consan {status}, {seconds:.1f} s, no report"
    stored = json.loads(report.read_text())
    found = [f"\n    {finding['kind']}: {finding['message'][:300]}" for finding in stored["findings"][:4]]
    return f"under consan {status}, {seconds:.1f} s, {summary(stored)}{''.join(found)}"


def summary(report: dict[str, Any]) -> str:
    """The verdict, what was found, and what was not checked."""
    kinds = Counter(finding["kind"] for finding in report["findings"])
    engines = Counter[str]()
    for kernel in report["kernels"]:
        engines[kernel.get("engine", "")] += kernel["launches"]
    listed = sum(kernel["launches"] for kernel in report["uninstrumented"])
    reasons = [reason[:150] for reason in report["incomplete"][:4]]
    return f"exit {report.get('exit')}, {report['verdict']}, {dict(kinds)}, launches {dict(engines)}, listed {listed}, {reasons}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or ["--assembly", "fast"])
