"""Long runs on a GPU: nothing grows, no result differs, and what goes wrong in the program goes wrong as without consan.

    python tests/bench/soak.py [launches training processes threads fork memory]

Each part runs its program alone and under `consan run`, prints a line, and takes at most 5 minutes. `launches`: 10^5 of CuPy; `training`:
2,000 steps (torch, Triton); `processes`: two at once on one device; `threads`: one launches while another frees; `fork`: a child after
start, which must not touch the device; `memory`: the program takes all of it, and gets what consan holds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LONGEST = 280  # seconds of a process
RUN = [sys.executable, "-m", "consan", "run", "--allow-incomplete"]
KERNEL = '''
import os, sys, time, threading
import cupy as cp
kernel = cp.RawKernel(r"""
extern "C" __global__ void sums(const float *x, float *out, int n) {
    __shared__ float tile[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    tile[t] = i < n ? x[i] : 0;
    for (int s = 128; s; s >>= 1) {
        __syncthreads();
        if (t < s) tile[t] += tile[t + s];
    }
    if (t == 0) out[blockIdx.x] = tile[0];
}
""", "sums")
n = 1 << 16
x, out = cp.arange(n, dtype=cp.float32) % 7, cp.zeros(n // 256, cp.float32)
wait = cp.cuda.Device().synchronize
def launch(): kernel((n // 256,), (256,), (x, out, cp.int32(n)))
def used(): return (lambda free, total: total - free)(*cp.cuda.runtime.memGetInfo()) >> 20
def resident(): return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20
'''
LAUNCHES = """
times = int(os.environ.get("TIMES", 100_000))
for _ in range(1000): launch()
wait(); before = used(), resident(); began = time.perf_counter()
for _ in range(times): launch()
wait(); seconds = time.perf_counter() - began
print("launch", round(1e6 * seconds / times, 2), "us; MiB of the device and the host", before, (used(), resident()))
print("result", float(out.sum()))
"""
THREADS = """
stop = threading.Event()
def frees():
    while not stop.is_set():
        cp.zeros(1 << 20, cp.float32); cp.get_default_memory_pool().free_all_blocks()
other = threading.Thread(target=frees); other.start()
for _ in range(20_000): launch()
wait(); stop.set(); other.join(); print("result", float(out.sum()))
"""
FORK = """
for _ in range(100): launch()
wait()
child = os.fork()
if child == 0: os._exit(7)  # not a call of the driver
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for _ in range(100): launch()
wait(); print("result", float(out.sum()))
"""
MEMORY = """
for _ in range(2000): launch()
wait(); pieces = []
for size in (1 << 30, 1 << 26, 1 << 22):
    try:
        while True: pieces.append(cp.cuda.Memory(size))
    except cp.cuda.runtime.CUDARuntimeError: pass
    except cp.cuda.memory.OutOfMemoryError: pass
print("taken", sum(each.size for each in pieces) >> 20, "MiB"); pieces.clear()
launch(); wait(); print("result", float(out.sum()))
"""
PARTS = {"launches": LAUNCHES, "processes": LAUNCHES, "threads": THREADS, "fork": FORK, "memory": MEMORY}


@dataclass(frozen=True)
class Ran:
    """What a process printed, and how it ended."""

    text: str
    status: int
    seconds: float

    @property
    def results(self) -> list[str]:
        """The lines that must be equal with consan and without."""
        return re.findall(r"^(?:result|child|loss).*$", self.text, re.MULTILINE)

    def line(self) -> str:
        """For people."""
        verdict = re.search(r"verdict: (\w+)", self.text)
        known = [each for each in self.text.splitlines() if re.match(r"launch|result|child|taken|step|loss|cost", each.strip())]
        return f"{self.seconds:.1f} s, status {self.status}, {verdict[1] if verdict else 'no verdict'}; {'; '.join(known)}"


def started(program: Path, *, checked: bool, **given: str) -> subprocess.Popen[str]:
    """A process of the program."""
    command = [*RUN, str(program)] if checked else [sys.executable, str(program)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **given})


def ran(process: subprocess.Popen[str]) -> Ran:
    """Its end."""
    began = time.perf_counter()
    try:
        text, _ = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
        text += "\nover the time limit"
    return Ran(text, process.returncode, time.perf_counter() - began)


def compare(name: str, alone: Ran, checked: Ran) -> bool:
    """Print both, and whether the results are equal."""
    equal = alone.results == checked.results and bool(alone.results)
    print(f"{name}\n  alone  {alone.line()}\n  consan {checked.line()}\n  {'equal' if equal else 'DIFFERENT'}", flush=True)
    if not equal:
        print(checked.text[-1500:])
    return equal


def main() -> None:
    names = sys.argv[1:] or [*PARTS, "training"]
    with tempfile.TemporaryDirectory() as folder:
        good = True
        for name in names:
            if name == "training":
                program, given = Path(__file__).with_name("train_step.py"), {"TRAIN_STEPS": "2000", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
            else:
                program, given = Path(folder, f"{name}.py"), {}
                program.write_text(KERNEL + PARTS[name])
            if name == "processes":
                given = {"TIMES": "20000"}
                both = [started(program, checked=True, **given) for _ in range(2)]
                good &= compare(name, *map(ran, both))
                continue
            good &= compare(name, *(ran(started(program, checked=checked, **given)) for checked in (False, True)))
    sys.exit(not good)


if __name__ == "__main__":
    main()
