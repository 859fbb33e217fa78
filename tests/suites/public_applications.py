"""Launches of whole applications whose labels speak of global memory: ScoR's seven, with their faults (`RACEY`) and without.

Sources are not in this repository (public_cases.py). Each kernel with a fault is a case of its own, launched as the host code launches it,
with small inputs: a graph of 390 vertices and 390 edges, divided among three CTAs; trees of two levels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from public_cases import GLOBAL
from suite_model import CLEAN, RACY, Case

SEEDS = 4
_INCLUDE = re.compile(r"^(?:#include |using namespace ).*$", re.MULTILINE)
_CTAS, _THREADS = 3, 64
_WORK = 390  # vertices, and edges: two visits of a CTA to its part, and some work to steal
_CHILDREN = 255  # of a node of a tree that has not been visited
_OLD, _DEPTH = 4000, 4 * 32  # places of a stack that others steal from, and of a CTA's own
_CONFIG = np.array([2, 2], np.int32).tobytes().hex()  # levels of a tree, and children of a node


@dataclass(frozen=True)
class Kernel:
    """A kernel of an application. Arguments without a type are arrays that `_arrays` makes."""

    entry: str
    args: str
    threads: int = _THREADS
    ctas: int = _CTAS


_ITEMS, _PART = f"i32[{_WORK}]=zeros", "i32[3]=zeros"
_QUEUE = f"{_PART} {_PART}"
APPLICATIONS = {
    "1dconv/1dconv": [Kernel("convolveKernel", "f32[5]=ones i32=5 f32[300]=ones i32=300 f32[300]=zeros")],
    "graph-coloring/gcol": [
        Kernel("assignColorsKernel", f"head tail {_ITEMS} {_ITEMS} {_ITEMS} {_ITEMS} {_QUEUE}"),
        Kernel("detectConflictsKernel", f"head tail from to {_ITEMS} colors i32[1]=ones {_QUEUE}"),
        Kernel("forbidColorsKernel", f"head tail from to {_ITEMS} colors {_ITEMS} {_QUEUE}"),
    ],
    "graph-connectivity/gcon": [
        Kernel("initKernel", f"head tail {_ITEMS} {_QUEUE}"),
        Kernel("linkKernel", f"head tail from to i32[{_WORK}]=arange {_QUEUE}"),
        Kernel("compressKernel", f"head tail parents {_QUEUE}"),
    ],
    "matrix-multiplication/mm": [
        Kernel(
            "matMultKernel",
            "i32[128]=ones i32[4096]=ones i32[32]=zeros i32=1 i32=128 i32=32 i32[64]=zeros i32[64]=zeros i32[1024]=zeros",
            ctas=2,
        )
    ],
    "reduction/red": [Kernel("reduceSinglePass", "i32[768]=ones i32[3]=zeros i32[384]=zeros i32[384]=zeros i32=768", threads=128)],
    "rule-110/r110": [Kernel("rule110Kernel", "i32[192]=arange i32[192]=zeros i32[192]=zeros i32=192 i32=1")],
    "uts/uts": [Kernel("parTreeSearch", f"own_stacks own_nodes other_stacks i32[{_CTAS * _OLD}]=zeros bytes={_CONFIG}", threads=32)],
}
_TEMPLATE = "template <unsigned int blockSize, bool nIsPow2>\n__global__"
_SIZES = "constexpr unsigned int blockSize = NTHREADS;\nconstexpr bool nIsPow2 = true;\n__global__"


def scor_applications(folder: Path, made: Path) -> Iterator[Case]:
    """ScoR's applications, each kernel without its fault and with it."""
    arrays = {name: f"i32[{array.size}]={_saved(made / f'{name}.npy', array)}" for name, array in _arrays().items()}
    for path, kernels in APPLICATIONS.items():
        name, target = path.split("/")[1], made / f"{path.split('/')[1]}.cu"
        target.write_text(_text(folder / "benchmarks" / f"{path}_kernel"))
        for kernel in kernels:
            args = tuple(arrays.get(arg, arg) for arg in kernel.args.split())
            sizes = (("NBLOCKS", str(kernel.ctas)), ("NTHREADS", str(kernel.threads)))
            for label, faults in ((CLEAN, ()), (RACY, (("RACEY", "1"),))):
                where = {"file": str(target), "entry": kernel.entry, "grid": kernel.ctas, "block": kernel.threads}
                title = f"{name} {kernel.entry}{' RACEY' * bool(faults)}"
                yield Case("ScoR's applications", title, **where, args=args, label=label, about=GLOBAL, defines=sizes + faults, seeds=SEEDS)


def _text(path: Path) -> str:
    """The device code of an application, without its host code. A template keeps one instance."""
    parts = [part.read_text() for suffix in (".cuh", ".cu") if (part := path.with_suffix(suffix)).is_file()]
    text = _INCLUDE.sub("", "\n".join(parts).replace("\r", "")).replace(_TEMPLATE, _SIZES)
    return text.replace("__global__", 'extern "C" __global__')


def _arrays() -> dict[str, np.ndarray[Any, Any]]:
    rng, first = np.random.default_rng(1), np.arange(_CTAS) * (_WORK // _CTAS)
    ends = np.sort(rng.integers(0, _WORK, (2, _WORK)), axis=0)
    stack = [(_DEPTH, 1, _DEPTH * k, 0, 1, 0) for k in range(_CTAS)], [(_OLD, 0, _OLD * k, 0, 0, 0) for k in range(_CTAS)]
    nodes = np.zeros((_CTAS * _DEPTH, 4), np.uint8)
    nodes[::_DEPTH] = [(0, _CHILDREN, 7, k + 1) for k in range(_CTAS)]
    found = {"head": first, "tail": first + _WORK // _CTAS, "from": ends[0], "to": ends[1]}
    found |= {"colors": rng.integers(0, 3, _WORK), "parents": np.maximum(np.arange(_WORK) - 2, 0)}
    found |= {"own_stacks": np.array(stack[0]), "other_stacks": np.array(stack[1]), "own_nodes": nodes.view(np.int32)}
    return {name: array.astype(np.int32).ravel() for name, array in found.items()}


def _saved(path: Path, array: np.ndarray[Any, Any]) -> Path:
    np.save(path, array)
    return path
