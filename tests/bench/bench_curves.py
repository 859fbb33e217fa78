"""How the cost of hooks grows: with the work of a CTA, with CTAs, and with findings. A table, and a picture of each.

    python tests/bench/bench_curves.py --device cpu --out tests/bench      curves-cpu.svg; needs matplotlib (pip install consan[bench])

Each point is the best of five launches after a first one: by CUDA events on a GPU, by the clock on the virtual machine, whose warp
instructions are counted, too: they do not depend on what else the computer does. Beside it stands what a straight
line through the first and the last point says, so that anything but linear growth can be read off the table.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "real")]

from bench_hooks import Counter  # noqa: E402
from bench_real import best, gpu_seconds  # noqa: E402

from consan.session.planning.options import SessionOptions  # noqa: E402
from consan.session.session import Session  # noqa: E402
from consan.toolchain.nvrtc import compile_ptx  # noqa: E402

LINES = 128  # of stores in the kernel that counts findings
TILED = """
extern "C" __global__ void tiled(unsigned* out, int steps) {
    __shared__ unsigned tile[256];
    unsigned sum = 0;
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
        tile[threadIdx.x] = k;
        __syncthreads();
        sum += tile[threadIdx.x ^ 33];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


@dataclass(frozen=True)
class Curve:
    """A picture: what is on its axis, and the points there as (x, source, CTAs, threads, steps)."""

    title: str
    axis: str
    points: tuple[tuple[int, str, int, int, int], ...]


RACY = """
extern "C" __global__ void racy(unsigned* out, int steps) {
    __shared__ unsigned tile[WORDS];
STORES
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}
"""


def racy(findings: int) -> str:
    """`LINES` stores; all threads make the first so many to one word."""
    stores = (f"    tile[{64 * k} + {'0' if k < findings else 'threadIdx.x'}] = threadIdx.x + {k};" for k in range(LINES))
    return RACY.replace("WORDS", str(64 * LINES)).replace("STORES", "\n".join(stores))


def curves(device: str) -> list[Curve]:
    """The three; larger on a GPU."""
    small = device == "cpu"
    work = (8, 16, 32, 64, 96, 128) if small else (64, 128, 256, 512, 768, 1024)
    ctas = (4, 8, 16, 32, 48, 64) if small else (512, 1024, 2048, 4096, 6144, 8192)
    return [
        Curve("work", "barrier intervals a CTA", tuple((n, TILED, 4 if small else 264, 256, n) for n in work)),
        Curve("CTAs", "CTAs of 256 threads", tuple((n, TILED, n, 256, 16) for n in ctas)),
        Curve("findings", "stores of several threads to one word", tuple((n, racy(n), 1, 64, 0) for n in (0, 16, 32, 64, 96, 128))),
    ]


def measured(device: str, source: str, ctas: int, threads: int, steps: int) -> tuple[float, float, int, int]:
    """Seconds of a plain launch and of one with hooks, the latter's warp instructions (virtual machine), and the number of findings."""
    session = Session(SessionOptions(device=device))
    ptx = compile_ptx(source, name="curve.cu", arch="sm_80").ptx
    entry = "racy" if "void racy" in source else "tiled"
    handle, prepared = session.backend.load(ptx), session.prepare(ptx)
    arguments = [session.backend.alloc(4 * ctas * threads).to_bytes(8, "little"), steps.to_bytes(4, "little")]
    shape: Any = (entry, (ctas, 1, 1), (threads, 1, 1), arguments)

    def timed(run: Any) -> float:
        run()
        session.backend.synchronize(None)
        if device == "cpu":
            return best(run, 5)
        with session.backend.current():
            return min(gpu_seconds(run) for _ in range(5))

    plain, hooks = timed(lambda: session.backend.launch(handle, *shape)), timed(lambda: session.launch(prepared, *shape))
    return plain, hooks, counted(lambda: session.launch(prepared, *shape)) if device == "cpu" else 0, len(session.report().findings)


def counted(run: Callable[[], Any]) -> int:
    """Warp instructions that the virtual machine runs."""
    counter = Counter()
    with counter:
        run()
    return sum(cost.instructions for cost in counter.costs.values())


def straight(xs: Sequence[int], ys: Sequence[float]) -> list[float]:
    """The line through the first and the last point."""
    return [ys[0] + (ys[-1] - ys[0]) * (x - xs[0]) / (xs[-1] - xs[0]) for x in xs]


def draw(path: Path, drawn: Sequence[tuple[Curve, list[float], list[float]]], device: str) -> None:
    """One picture of all curves, side by side."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "consan"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(drawn), figsize=(12, 3.6), constrained_layout=True)
    figure.suptitle(f"consan on {device}: time of a launch")
    for axis, (curve, plain, hooks) in zip(axes, drawn, strict=True):
        xs = [point[0] for point in curve.points]
        axis.plot(xs, [1e3 * y for y in hooks], "o-", label="with hooks")
        axis.plot(xs, [1e3 * y for y in straight(xs, hooks)], ":", color="gray", label="straight line")
        axis.plot(xs, [1e3 * y for y in plain], "s-", label="plain")
        axis.set(xlabel=curve.axis, ylabel="ms", xlim=(0, None), ylim=(0, None))
        axis.legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Print the tables; draw them where asked to."""
    parser = argparse.ArgumentParser(description="How the cost of hooks grows with work, CTAs and findings.")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--out", type=Path, help="folder for curves-DEVICE.svg")
    options = parser.parse_args()
    name = Session(SessionOptions(device=options.device)).backend.device_name
    print(f"{name}, Python {platform.python_version()}, NumPy {np.__version__}; ms of a launch, best of 5")
    drawn = []
    for curve in curves(options.device):
        rows = [measured(options.device, *point[1:]) for point in curve.points]
        plain, hooks = [row[0] for row in rows], [row[1] for row in rows]
        drawn.append((curve, plain, hooks))
        print(f"{curve.axis:28}{'plain':>10}{'hooks':>10}{'line':>10}{'instructions':>14}{'findings':>10}")
        for point, row, line in zip(curve.points, rows, straight([p[0] for p in curve.points], hooks), strict=True):
            print(f"{point[0]:<28}{row[0] * 1e3:10.3f}{row[1] * 1e3:10.3f}{line * 1e3:10.3f}{row[2]:14}{row[3]:10}")
    if options.out is not None:
        draw(options.out / f"curves-{options.device}.svg", drawn, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
