"""The cost of the programs of tests/frameworks, checked and plain: start and first call, later calls. In their environment.

    .venv-frameworks/bin/python tests/bench/bench_frameworks.py [--device gpu] [PROGRAM ...]

First: all of the program, with its imports, compilations and first launches. Later: a call of its kernel until its end, the middle of 20.
Without a GPU seconds of the processor, and plain is on the virtual machine, too, but with no kernel chosen (`--kernel-name`). On a GPU
seconds by the clock, and plain is without consan.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

PROGRAMS: Final = Path(__file__).parents[1] / "frameworks" / "programs"
CALLS: Final = {  # of each program, in its own names
    "numba_reverse": "reverse[1, 64](cuda.to_device(values), out)",
    "numba_mlir_reverse": "reverse[1, 64](cuda.to_device(values), out)",
    "warp_sum": "wp.launch(add, dim=64, inputs=[given, total], device='cuda'); wp.synchronize()",
    "warp_grid": "wp.launch(near, dim=COUNT, inputs=[grid.id, points, cells], device='cuda'); wp.synchronize()",
    "tilelang_roles": "product(64, 128, 128, 64, 64)(a, b)",
    "pallas_scale": "np.asarray(jax.jit(doubled)(x))",
    "pallas_triton_rows": "np.asarray(jax.jit(doubled)(x))",
    "cute_tensors": "fast(x, first); torch.cuda.synchronize()",
    "helion_sums": "sums(a, torch.zeros(64, device='cuda')); torch.cuda.synchronize()",
}
CONSAN: Final = ("-m", "consan", "run", "--device")
WAYS: Final = {  # what comes between Python and the program, and the clock
    "cpu": ({"checked": (*CONSAN, "cpu"), "plain": (*CONSAN, "cpu", "--kernel-name", "regex=^no such kernel$")}, "time.process_time()"),
    "gpu": ({"checked": (*CONSAN, "gpu"), "plain": ()}, "time.time()"),
}
MEASURED: Final = """
import json as _json, pathlib as _pathlib, statistics as _statistics, time
_first, _later = {clock} - {began}, []
for _ in range(20):
    _began = {clock}
    {call}
    _later.append({clock} - _began)
_pathlib.Path({place!r}).write_text(_json.dumps([_first, _statistics.median(_later)]))
"""


def cost(name: str, words: tuple[str, ...], clock: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        program, place = Path(folder, f"{name}.py"), Path(folder, "cost")
        began = time.time() if clock == "time.time()" else 0.0
        measured = MEASURED.format(clock=clock, began=began, call=CALLS[name], place=str(place))
        program.write_text((PROGRAMS / program.name).read_text() + measured)
        environment = {**os.environ, "XDG_CACHE_HOME": folder, "TRITON_CACHE_DIR": folder, "CUTE_DSL_NO_CACHE": "1"}
        command = [sys.executable, *words, str(program)]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        if not place.exists():
            return f"failed: {(done.stdout + done.stderr)[-200:]}"
        first, later = json.loads(place.read_text())
        return f"{first:.1f}, {later:.4f} s"


def main(device: str, names: list[str]) -> None:
    ways, clock = WAYS[device]
    for name in names or CALLS:
        print(f"| {name} |", *(f"{way} {cost(name, words, clock)} |" for way, words in ways.items()), flush=True)


if __name__ == "__main__":
    main(*(("gpu", sys.argv[3:]) if sys.argv[1:3] == ["--device", "gpu"] else ("cpu", sys.argv[1:])))
