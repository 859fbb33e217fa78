"""What `consan audit` of a folder costs: seconds of each file, processor time, builds, memory, rows that are wrong.

    python tests/bench/bench_audit_folder.py [--files N] [-j J] [--workers W ...]

The folder has the modules of tests/audit, each as it is and with its bug, over and over: each file has a variable and constants of its own,
so that no cache knows it. `--workers 1 4`: the same folder with so many workers of a Dask cluster, one after the other, with new texts.
Memory is that of the command, with its servers and what they start, as the kernel counts pages once (Pss), each 2 s.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "audit"))

from audit_modules import FOLDER, MODULES


def _write(folder: Path, count: int, mark: str) -> dict[str, str]:
    """The files: by their names the kernel that has the bug; empty: none has."""
    (folder / "harness.h").write_text((FOLDER / "harness.h").read_text())
    expected = {}
    for number in range(count):
        module = MODULES[number // 2 % len(MODULES)]
        path = next(path for path, bug in module.written(folder).items() if bug == bool(number % 2))
        path = path.rename(folder / f"{mark}_{number:04}_{path.name}")
        path.write_text(path.read_text() + f"__device__ int only_{mark}_{number}[{number + 1}] = {{{number}}};\n")
        expected[path.name] = module.expected[0] if number % 2 else ""
    for module in MODULES:
        for path in (folder / module.path.name, folder / f"{module.path.stem}_bug.cu"):
            path.unlink(missing_ok=True)
    return expected


def _tree(process: int) -> list[int]:
    found = [process]
    for each in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def _memory(process: int) -> float:
    """MiB of a process and all below it."""
    kilobytes = 0
    for each in _tree(process):
        with contextlib.suppress(OSError):
            kilobytes += int(Path(f"/proc/{each}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0])
    return kilobytes / 1024


def _lines(path: Path) -> int:
    return path.read_text().count("\n") if path.is_file() else 0


def _audit(folder: Path, more: list[str]) -> tuple[float, float, list[tuple[int, float]]]:
    """Run the command. Wall and processor seconds, and the memory at each hundredth of the files."""
    journal = folder / "journal"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started, samples = time.monotonic(), []
    command = [sys.executable, "-m", "consan", "audit", str(folder), "--journal", str(journal), "-o", str(folder / "out.json"), *more]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        while running.poll() is None:
            time.sleep(2)
            samples.append((_lines(journal), _memory(running.pid)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - started, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, samples


def _wrong(folder: Path, expected: dict[str, str]) -> list[str]:
    """Files whose rows are not those that their module has."""
    wrong = []
    for each in json.loads((folder / "out.json").read_text())["files"]:
        bug = expected[Path(each["file"]).name]
        if any(row["verdict"] != ("violations" if row["kernel"] == bug else "clean") for row in each["rows"]):
            wrong.append(Path(each["file"]).name)
    return wrong


def _said(folder: Path, name: str, expected: dict[str, str], more: list[str]) -> None:
    wall, used, samples = _audit(folder, more)
    seconds = sorted(each["seconds"] for each in json.loads((folder / "out.json").read_text())["files"])
    median, p90 = statistics.median(seconds), seconds[int(0.9 * len(seconds))]
    print(f"{name}: {len(seconds)} files in {wall:.0f} s, median {median:.2f} s, p90 {p90:.2f} s, processor {used:.0f} s")
    for tenth in range(1, 11):
        done = [memory for lines, memory in samples if len(seconds) * (tenth - 1) <= lines * 10 < len(seconds) * tenth]
        print(
            f"  memory in the {tenth}th tenth: {statistics.median(done):.0f} MiB, most {max(done):.0f}" if done else f"  {tenth}: no sample"
        )
    wrong = _wrong(folder, expected)
    print(f"  wrong files: {len(wrong)} {wrong[:10]}; load {os.getloadavg()[0]:.0f}", flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--workers", type=int, nargs="*", default=[])
    given = parser.parse_args()
    for workers in given.workers or [0]:
        with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as stack:
            expected = _write(Path(made), given.files, f"w{workers}x{os.getpid()}")
            more = ["-j", str(given.j)]
            if workers:
                from distributed import LocalCluster

                cluster = stack.enter_context(
                    LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1")
                )
                more = ["--executor", cluster.scheduler_address.replace("tcp://", "dask://")]
            _said(Path(made), f"{workers} workers of Dask" if workers else f"-j {given.j}", expected, more)


if __name__ == "__main__":
    main()
