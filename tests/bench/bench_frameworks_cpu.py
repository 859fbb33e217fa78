"""The cost of the programs of tests/frameworks without a GPU, checked and plain: start, first call, later calls. In their environment.

    .venv-frameworks/bin/python tests/bench/bench_frameworks_cpu.py [PROGRAM ...]

Seconds of the processor, of the program's process. First: all of the program, with its imports, compilations and first launches. Later:
a call of its kernel, the middle of 5. Plain: on the virtual machine, too, but with no kernel chosen (`--kernel-name`).
"""

from __future__ import annotations

import json
import os
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

PROGRAMS: Final = Path(__file__).parents[1] / "frameworks" / "programs"
LATER, PLACE = 5, "BENCH_PLACE"
CALLS: Final = {  # of each program, in its own names
    "numba_reverse": "reverse[1, 64](cuda.to_device(values), out)",
    "numba_mlir_reverse": "reverse[1, 64](cuda.to_device(values), out)",
    "warp_sum": "wp.launch(add, dim=64, inputs=[given, total], device='cuda')",
    "warp_grid": "wp.launch(near, dim=COUNT, inputs=[grid.id, points, cells], device='cuda')",
    "tilelang_roles": "product(64, 128, 128, 64, 64)(a, b)",
    "pallas_scale": "np.asarray(jax.jit(doubled)(x))",
    "pallas_triton_rows": "np.asarray(jax.jit(doubled)(x))",
    "cute_tensors": "fast(x, first)",
    "helion_sums": "sums(a, torch.zeros(64, device='cuda'))",
}
WAYS: Final = {"checked": (), "plain": ("--kernel-name", "regex=^no such kernel$")}


def measure(name: str) -> None:
    """In the process of the program."""
    found = runpy.run_path(str(PROGRAMS / f"{name}.py"))
    first, later = time.process_time(), []
    for _ in range(LATER):
        began = time.process_time()
        eval(CALLS[name], found)
        later.append(time.process_time() - began)
    Path(os.environ[PLACE]).write_text(json.dumps([first, statistics.median(later)]))


def cost(name: str, options: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "cost")
        command = [sys.executable, "-m", "consan", "run", "--device", "cpu", *options, __file__, "--measure", name]
        environment = {**os.environ, PLACE: str(place), "XDG_CACHE_HOME": folder}
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        if not place.exists():
            return f"failed: {(done.stdout + done.stderr)[-200:]}"
        first, later = json.loads(place.read_text())
        return f"{first:.1f}, {later:.3f} s"


def main(names: list[str]) -> None:
    for name in names or CALLS:
        print(f"| {name} |", *(f"{way} {cost(name, options)} |" for way, options in WAYS.items()), flush=True)


if __name__ == "__main__":
    measure(sys.argv[2]) if sys.argv[1:2] == ["--measure"] else main(sys.argv[1:])
