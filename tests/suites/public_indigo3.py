"""Launches of Indigo3's kernels: BFS, connected components, shortest paths and triangle counting, with `RaceBug`, `SyncBug` and without.

All styles are taken that the suite's own generator makes with `int` and `atomicMin` or relaxed `cuda::atomic` accesses (`Atomic`).

Sources are not in this repository: `PUBLIC_SUITES` names a folder with a checkout of Indigo3Suite (burtscher/Indigo3Suite). Each kernel is
launched once, with the arrays as a later round of its host code finds them: distances that are known in part, a worklist of all vertices or
edges. CTAs have 32 threads in place of 512, so that small inputs have several; 64 where triangles are
counted, since warps share memory there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from public_cases import GLOBAL
from suite_model import CLEAN, RACY, Case

ALGORITHMS = ("BFS", "CC", "SSSP", "TC")
CONFIGURATION = """**/
CODE:
  bug: {all}
  pattern: {all}
  option: {all, ~CudaAtomic, ~BoundsBug, ~NbrBoundsBug, ~ExcessThreadsBug, ~FieldBug, ~LivelockBug}
  dataType: {IntType}
"""
_KERNEL = re.compile(r"__global__ void (?!init)(\w+)\((.*)\)")
_HEADER = re.compile(r'#include "indigo_\w+\.h"')
_DEVICE = re.compile(r"^static inline __device__.*?^}$", re.MULTILINE | re.DOTALL)
_GRAPH = ("nodes", "edges", "nindex", "nlist", "eweight")
_PROLOGUE = """#define MAX(x, y) (((x) > (y)) ? (x) : (y))
#define MIN(x, y) (((x) < (y)) ? (x) : (y))
static const basic_t maxval = 2147483647;
"""
_THREADS, _OF_TRIANGLES, _VERTICES, _DEGREE = 32, 64, 80, 4
_CTAS = 24
_EDGES, _PERSISTENT, _ITERATION = _VERTICES * _DEGREE, 2, 2


def indigo3(folder: Path, made: Path) -> Iterator[Case]:
    """The kernels of the generator, which runs in `made`."""
    for name in ("codeGen", "scripts"):
        shutil.copytree(folder / name, made / name)
    for name in ("generate_all_codes.py", "copyright.txt"):
        shutil.copy(folder / name, made)
    (made / "codeGen" / "configure.txt").write_text(CONFIGURATION)
    common = (folder / "lib" / "indigo_tc_vertex_cuda.h").read_text()
    helpers = "\n".join([(folder / "lib" / "cuda_atomic.h").read_text(), *_DEVICE.findall(common)])
    arrays = _arrays(made)
    for algorithm in ALGORITHMS:
        subprocess.run([sys.executable, "generate_all_codes.py", "CUDA", algorithm], cwd=made, check=True, capture_output=True)
        for path in sorted((made / "generatedCodes" / "CUDA" / f"{algorithm}-CUDA").glob("*.cu")):
            yield _case(path, made, helpers, arrays)


def _case(path: Path, made: Path, helpers: str, arrays: dict[str, str]) -> Case:
    text = path.read_text()
    found = _KERNEL.search(text)
    assert found is not None, path
    names = [words.split()[-1] for words in found[2].split(",")]
    args = [arrays[name] for given in names for name in (_GRAPH if given == "g" else (_item(given, path.stem),))]
    tags = set(path.stem.split("_"))
    items, threads = _EDGES if "E" in tags else _VERTICES, _OF_TRIANGLES if "TC" in tags else _THREADS
    ctas = _PERSISTENT if "Persist" in tags else items if "Block" in tags or "Warp" in tags else -(-items // threads)
    ctas = min(ctas, _CTAS) if "TC" in tags else ctas  # the others do the same, at other vertices or edges
    target = made / path.name
    target.write_text(_alone(text[: text.index("static double GPU")], helpers, threads))
    label = RACY if tags & {"RaceBug", "SyncBug"} else CLEAN
    return Case("Indigo3", path.stem, str(target), found[1], ctas, threads, tuple(args), label, GLOBAL)


def _item(name: str, kernel: str) -> str:
    """The array of a worklist depends on what it lists; triangles are counted in a graph that has many."""
    if name == "nlist" and kernel.startswith("TC"):
        return "nlist of triangles"
    return f"{name} of edges" if name in ("wl1", "wl1size") and "_E_" in kernel else name


def _alone(text: str, helpers: str, threads: int) -> str:
    """The kernels without their host code; the graph is so many parameters."""
    graph = "const int g_nodes, const int g_edges, const int* const g_nindex, const int* const g_nlist, const int* const g_eweight"
    text = _HEADER.sub(lambda _: _PROLOGUE + helpers, text).replace("ThreadsPerBlock = 512", f"ThreadsPerBlock = {threads}")
    return re.sub(r"\bg\.(\w+)", r"g_\1", text.replace("const ECLgraph g", graph)).replace("static __global__", 'extern "C" __global__')


def _arrays(made: Path) -> dict[str, str]:
    """The arguments by the names of parameters. Half of the vertices have been reached."""
    rng = np.random.default_rng(3)
    reached = np.where(rng.random(_VERTICES) < 0.5, rng.integers(0, 2 * _ITERATION, _VERTICES), 2**31 - 1)
    arrays = {
        "nindex": np.arange(_VERTICES + 1) * _DEGREE, "nlist": rng.integers(0, _VERTICES, _EDGES), "eweight": rng.integers(1, 9, _EDGES),
        "sp": np.repeat(np.arange(_VERTICES), _DEGREE), "dist": reached, "dist_n": reached, "label": np.arange(_VERTICES),
        "label_n": np.arange(_VERTICES), "goagain": np.zeros(1), "wl1": np.arange(_VERTICES), "wl1 of edges": np.arange(_EDGES),
        "wl2": np.zeros(_EDGES * (_DEGREE + 1)), "wl2size": np.zeros(1), "time": np.zeros(_EDGES),
        "g_count": np.zeros(1),
        "nlist of triangles": np.sort((np.arange(_VERTICES)[:, None] + (-2, -1, 1, 2)) % _VERTICES).ravel(),
    }  # fmt: skip
    for name, array in arrays.items():
        np.save(made / f"{name}.npy", array.astype(np.int32))
    values = {"nodes": _VERTICES, "edges": _EDGES, "iter": _ITERATION, "wl1size": _VERTICES, "wl1size of edges": _EDGES}
    given = {name: f"i32[{len(array)}]={made / name}.npy" for name, array in arrays.items()}
    return given | {name: f"i32={value}" for name, value in values.items()}
