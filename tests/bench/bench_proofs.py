"""Which launches of the corpus's kernels are proven before they run, how long it takes, and why others are not; on the host alone.

    PYTHONPATH=tests:tests/real CONSAN_CORPUS_PYTHON=/path/to/python-with-triton python tests/bench/bench_proofs.py [--small] [NAME ...]

A name is a part of an entry's name. The sizes are those of a GPU, or the small ones. `first`: the kernel is read and its accesses are
followed; `again`: the same kernel and sizes. The arrays lie one after the other, a gap between.
"""

from __future__ import annotations

import argparse
import itertools
import time
from types import SimpleNamespace
from typing import Any

import corpus
import numpy as np
from hopper_cases import ARCH, CLUSTER_CASES, HOPPER_CASES
from real_cases import CASES, Case, Size
from real_run import entry_of

from consan.instrument.ptx import parse
from consan.ranges import LaunchExtents, NotProven, Slice, proven
from consan.session.planning.proofs import Proofs

AGAIN = 20
GAP = 1 << 20


def reason(ptx: str, entry: str, args: tuple[bytes, ...], shape: LaunchExtents) -> str:
    """Why a launch has no proof; empty if it has one."""
    try:
        proven(Slice(next(each for each in parse(ptx).functions if each.name == entry)), args, shape)
    except NotProven as error:
        return str(error)
    return ""


def measured(name: str, case: Case, size: Size) -> str:
    """A row of the table."""
    ptx = corpus.get(name).make()
    launch = case.make(size, np.random.default_rng(0))
    places: dict[int, int] = {}
    ends = itertools.accumulate((-(-each.nbytes // GAP) * GAP + GAP for each in launch.buffers()), initial=0x7F0000000000)
    for array, place in zip(launch.buffers(), ends, strict=False):
        places.setdefault(id(array), place)
    args = tuple(launch.pack(lambda array: places[id(array)]))
    module, entry = parse(ptx), entry_of(ptx, launch)
    prepared: Any = SimpleNamespace(number=0, plain=ptx, instrumented=SimpleNamespace(module=module))
    shape, proofs, times = LaunchExtents(launch.grid, launch.block), Proofs(), []
    for _ in range(1 + AGAIN):
        begin = time.perf_counter()
        count = proofs.accesses(prepared, entry, args, shape)
        times.append(time.perf_counter() - begin)
    why = "" if count else reason(ptx, entry, args, shape)
    return f"| {name} | {count:,} | {times[0] * 1e3:.0f} ms | {sorted(times[1:])[AGAIN // 2] * 1e6:.0f} us | {why} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[""])
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    cases = [(f"{case.name}/{arch}", case) for case in CASES for arch in ("sm_80", ARCH)]
    cases += [(f"{case.name}/{ARCH}", case) for case in (*HOPPER_CASES, *CLUSTER_CASES)]
    print("| kernel | accesses | first | again | why not |\n|---|---|---|---|---|", flush=True)
    for name, case in cases:
        if any(each in name for each in options.names):
            skip = corpus.get(name).skip
            print(
                f"| {name} | | | | not here: {skip} |" if skip else measured(name, case, "small" if options.small else "full"), flush=True
            )


if __name__ == "__main__":
    main()
