"""Launches of the public suites whose labels speak of global memory: ScoR's microbenchmarks, Indigo's patterns and HiRace's.

Their sources are not in this repository. `PUBLIC_SUITES` names a folder with their checkouts: ScoR (csl-iisc/ScoR), IndigoSuite
(burtscher/IndigoSuite), HiRace-Artifact-SC24 (of JohnJacobsonIII). A case's text is made from them on demand, in a folder that the caller
gives: the kernel without its host code, with one tag set of Indigo's pattern language, or without `volatile`.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from suite_model import CLEAN, RACY, Case

FOLDER = "PUBLIC_SUITES"  # not CONSAN_*: consan warns of those that it does not know
GLOBAL = "global memory"
_DEFINE = re.compile(r"#define\s+(NBLOCKS|TPERBLK)\s+(\d+)")
_TAG = re.compile(r"/\*@([a-zA-Z0-9]*)@\*/")
_BUGS = {"atomicBug": GLOBAL, "raceBug": GLOBAL, "guardBug": GLOBAL, "syncBug": "shared memory", "boundsBug": "bounds"}
_TYPES = ("long", "float", "double", "char", "short")
_VERTICES, _DEGREE = 6, 20  # the first and the last vertex have no neighbours
# Whom a vertex belongs to -> CTAs and threads of a CTA; of persistent patterns, which have fewer.
_LAUNCHES = {"thread": ((3, 2), (2, 2)), "warp": ((3, 64), (2, 64)), "block": ((6, 64), (3, 64))}


def checkout(name: str) -> Path | None:
    """The sources of a suite; None if they are not here."""
    folder = Path(os.environ.get(FOLDER, "")) / name
    return folder if FOLDER in os.environ and folder.is_dir() else None


def scor(folder: Path, made: Path, *, volatile: bool = True) -> Iterator[Case]:
    """ScoR's microbenchmarks, in 4 schedules each, as they are or with plain data."""
    for path in sorted((folder / "microbenchmarks" / "src").glob("*.cu")):
        text = path.read_text()
        sizes = {name: int(value) for name, value in _DEFINE.findall(text)}
        macros, _, rest = text.partition("void errCheck")
        kernel = rest[rest.index("\n}\n") + 3 : rest.index("int main")].replace("__global__", 'extern "C" __global__')
        if not volatile:
            if "volatile unsigned int *data" not in kernel:
                continue
            kernel = kernel.replace("volatile unsigned int *data", "unsigned int *data")
        target = made / f"{path.stem}.cu"
        target.write_text(macros.replace("#include <stdio.h>", "") + kernel)
        label = CLEAN if path.stem.startswith("norace") else RACY
        group = "ScoR" if volatile else "ScoR, data not volatile"
        yield Case(group, path.stem, str(target), "kmain", sizes["NBLOCKS"], sizes["TPERBLK"], ("u32[64]=zeros",), label, GLOBAL, seeds=4)


def chosen(text: str, tags: frozenset[str]) -> str:
    """A pattern of Indigo with some of its tags: of a line the piece behind the tag that is set, else the piece before the first tag."""
    lines = []
    for line in text.splitlines():
        pieces = _TAG.split(line)
        taken = [piece for tag, piece in zip(pieces[1::2], pieces[2::2], strict=True) if tag in tags]
        lines.append(taken[0] if taken else pieces[0])
    return "\n".join(lines)


def choices(text: str) -> Iterator[frozenset[str]]:
    """All sets of tags of a pattern: of each line's tags at most one. The type is `int`."""
    groups: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if tags := _TAG.findall(line):
            groups.setdefault(tags[0], ("", *tags))
    for tags in itertools.product(*groups.values()):
        found = frozenset(filter(None, tags))
        if not found & set(_TYPES) and not {"syncBug", "shfl"} <= found:
            yield found


def indigo(folder: Path, made: Path) -> Iterator[Case]:
    """Indigo's CUDA patterns with `int`. A kernel with faults of several sorts counts by the first of `_BUGS`."""
    args = graph(made)
    for path in sorted((folder / "Generators" / "CUDA_sources").glob("*.idg")):
        text = path.read_text()
        cut = text[: text.index("void serial_code")].replace('#include "indigo_cuda.h"', "")
        for tags in choices(text):
            name = "_".join((path.stem, *sorted(tags)))
            target = made / f"{name}.cu"
            target.write_text(chosen(cut, tags).replace("__global__", 'extern "C" __global__'))
            about = next((what for bug, what in _BUGS.items() if bug in tags), GLOBAL)
            whom = next((whom for whom in ("block", "warp") if path.stem.endswith(whom)), "thread")
            grid, block = _LAUNCHES[whom]["persistent" in tags]
            label = RACY if tags & _BUGS.keys() else CLEAN
            yield Case(f"Indigo, {about}", name, str(target), "test_kernel", grid, block, args, label, about)


def hirace(folder: Path, made: Path) -> Iterator[Case]:
    """The Indigo kernels that HiRace's artifact has, whose labels speak of races: those with `boundsBug` are left out."""
    args = graph(made)
    for path in sorted((folder / "indigo" / "indigo_sources").glob("*/*.cu")):
        tags = set(path.stem.removeprefix(path.parent.name).split("_"))
        if "boundsBug" in tags:
            continue
        text = path.read_text()
        target = made / path.name
        cut = text[: text.index("void serial_code")].replace('#include "indigo_cuda.h"', "")
        target.write_text(cut.replace("__global__", 'extern "C" __global__'))
        whom = next((whom for whom in ("block", "warp") if path.parent.name.endswith(whom)), "thread")
        grid, block = _LAUNCHES[whom]["persistent" in tags]
        label = RACY if tags & _BUGS.keys() else CLEAN
        yield Case("HiRace's Indigo", path.stem, str(target), "test_kernel", grid, block, args, label, GLOBAL)


def graph(made: Path) -> tuple[str, ...]:
    """The graph and the two arrays, as arguments."""
    rng, edges = np.random.default_rng(1), (_VERTICES - 2) * _DEGREE
    arrays = {
        "nindex": np.clip(np.arange(-1, _VERTICES) * _DEGREE, 0, edges),
        "nlist": rng.integers(0, _VERTICES, edges),
        "data1": rng.integers(0, _VERTICES, edges),
        "data2": rng.integers(0, edges, edges),
    }
    arrays["nlist"][_DEGREE - 1 :: _DEGREE] = _VERTICES - 1  # the last neighbours meet the patterns' conditions: else nothing races
    for name, array in arrays.items():
        np.save(made / f"{name}.npy", array.astype(np.int32))
    return (*(f"i32[{len(array)}]={made / name}.npy" for name, array in arrays.items()), f"i32={_VERTICES}")
