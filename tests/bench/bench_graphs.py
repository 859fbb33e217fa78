"""CUDA graphs on a GPU: programs alone and under `consan run`, one behind the other on the same machine.

    python tests/bench/bench_graphs.py [NAME ...] [--replays N]

Each is a process of its own. For both: ms of a replay, seconds of the process, GPU memory after the first tenth of the replays and
after the last, and whether results are the same. For `consan run` also the verdict, its gaps, and launches by engine.

    compile     torch.compile(mode="reduce-overhead") of a small network: Inductor's kernels in graphs of torch's
    capture20   20 graphs of five Triton kernels each, captured in one memory pool for batches 1 to 20, as vLLM does; each replayed in turn
    replays     one graph of five Triton kernels, replayed 10^4 times

Predictions, made before the first run (the aim is 1.3 times a plain replay):
    compile     1.2 to 1.6 times; `clean`; every kernel of Inductor recorded
    capture20   1.3 to 2 times: three more nodes for each kernel, about 2 us each; at most 256 MiB more memory
    replays     as capture20; memory after a tenth of the replays and at the end differ by less than 1 MiB
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LONGEST = 280  # seconds of a process
TIMED = """
import time, torch
def used():
    free, total = torch.cuda.mem_get_info()
    return (total - free) / 2**20
def measure(replay, result, times):
    replay(0); torch.cuda.synchronize()
    first, began = 0, time.perf_counter()
    for number in range(times):
        replay(number)
        if number == times // 10: torch.cuda.synchronize(); first = used()
    torch.cuda.synchronize()
    print("measured", 1e3 * (time.perf_counter() - began) / times, first, used(), float(result().double().sum()))
"""
KERNELS = """
import triton, triton.language as tl
@triton.jit
def scaled(x, y, n, factor, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)
@triton.jit
def added(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)
@triton.jit
def normed(x, y, n, B: tl.constexpr):
    at = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=0.0)
    tl.store(y + tl.program_id(0) * n + at, row / tl.sqrt(tl.sum(row * row) / n + 1e-5), mask=at < n)
@triton.jit
def softmax(x, y, n, B: tl.constexpr):
    at = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=-float("inf"))
    row = tl.exp(row - tl.max(row, 0))
    tl.store(y + tl.program_id(0) * n + at, row / tl.sum(row, 0), mask=at < n)
N = 1024
def step(x, y, z):
    rows = x.shape[0]
    cells = triton.cdiv(rows * N, 1024)
    normed[(rows,)](x, y, N, B=N); scaled[(cells,)](y, z, rows * N, 0.5, B=1024); added[(cells,)](x, z, rows * N, B=1024)
    softmax[(rows,)](z, y, N, B=N); added[(cells,)](y, z, rows * N, B=1024)
def made(rows):
    return [torch.linspace(0, 1, rows * N, device="cuda").view(rows, N), *(torch.zeros(rows, N, device="cuda") for _ in range(2))]
def captured(rows, pool=None):
    given = made(rows)
    side = torch.cuda.Stream(); side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side): step(*given)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool): step(*given)
    return graph, given
"""
PROGRAMS = {
    "compile": """
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.LayerNorm(512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Softmax(-1)).cuda()
run, x, out = torch.compile(net, mode="reduce-overhead"), torch.randn(256, 512, device="cuda"), [None]
def replay(_):
    torch.compiler.cudagraph_mark_step_begin()
    with torch.no_grad(): out[0] = run(x)
for _ in range(3): replay(0)
measure(replay, lambda: out[0], TIMES)
""",
    "capture20": KERNELS
    + """
pool, graphs = torch.cuda.graph_pool_handle(), []
for rows in range(20, 0, -1): graphs.append(captured(rows, pool))
measure(lambda number: graphs[number % 20][0].replay(), lambda: sum(given[2].sum() for _, given in graphs), TIMES)
""",
    "replays": KERNELS
    + """
graph, given = captured(64)
measure(lambda _: graph.replay(), lambda: given[2], TIMES)
""",
}


def main(names: list[str], replays: int) -> None:
    """Print two lines for each program."""
    for name in names or PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, f"{name}.py")
            script.write_text(TIMED + PROGRAMS[name].replace("TIMES", str(replays)))
            run(name, script, consan=False)  # fills the caches
            alone, checked = run(name, script, consan=False), run(name, script, consan=True)
            print(f"{name}: plain {told(alone)}", flush=True)
            print(f"{name}: consan {told(checked)}; {times(alone, checked)}", flush=True)


def run(name: str, script: Path, *, consan: bool) -> dict[str, Any]:
    """The figures of one process, and its report."""
    report = script.with_suffix(".json")
    words = ["-m", "consan", "run", "-o", str(report), "--allow-incomplete"] if consan else []
    began = time.perf_counter()
    done = subprocess.run([sys.executable, *words, str(script)], capture_output=True, text=True, check=False, timeout=LONGEST)
    seconds = time.perf_counter() - began
    found = re.search(r"measured (\S+) (\S+) (\S+) (\S+)", done.stdout)
    if found is None:
        raise SystemExit(f"{name}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    figures = dict(zip(("replay", "early", "late", "result"), map(float, found.groups()), strict=True))
    return {**figures, "seconds": seconds, "report": json.loads(report.read_text()) if report.exists() else None}


def told(figures: dict[str, Any]) -> str:
    """The figures in words."""
    text = f"{figures['replay']:.4f} ms a replay, {figures['seconds']:.1f} s, {figures['early']:.0f} and {figures['late']:.0f} MiB"
    report = figures["report"]
    if report is None:
        return text
    engines = {(kernel["name"], kernel["engine"]): kernel["launches"] for kernel in report["kernels"] if kernel["launches"]}
    ran = ", ".join(f"{name} {engine} {launches:,}" for (name, engine), launches in sorted(engines.items()))
    return f"{text}; {report['verdict']}, {len(report['findings'])} findings; {ran}; gaps: {report['incomplete'] or 'none'}"


def times(alone: dict[str, Any], checked: dict[str, Any]) -> str:
    """How the two compare."""
    more, grown = checked["early"] - alone["early"], checked["late"] - checked["early"]
    same = "the same" if alone["result"] == checked["result"] else "NOT the same"
    return f"{checked['replay'] / alone['replay']:.2f}x a replay, {more:+.0f} MiB, grown by {grown:.1f} MiB, results {same}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*PROGRAMS, []])
    parser.add_argument("--replays", type=int, default=10_000)
    given = parser.parse_args()
    main(given.names, given.replays)
