"""Which kernels of `tests/kernels` `consan prove` proves, with the grid of their headers: a JSON object a line, then the sums.

    PYTHONPATH=tests:tests/kernels python tests/bench/bench_prover.py [--racy] [--within SECONDS] [--share K/N] [FOLDER ...]

`--racy`: the forms with the fault. None of those whose header expects a race may be proven. `plain`: the kernel synchronises by nothing
but barriers of all threads, `__syncwarp()` and `cp.async`. `these integers`: proven for the integers of the header's launch alone, such as
the width of a matrix, whose rows may overlap for others. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from test_proven_twins import grid_of, races
from twin_file import KernelFile, kernel, read

from consan._errors import ConsanError
from consan.backends.virtual import VirtualBackend
from consan.instrument.ptx import parse
from consan.launching.placement import Placement
from consan.prove.environment import Environment
from consan.prove.proof import PROVEN, Assumption, prove
from consan.prove.solver import Formula, z3

KERNELS: Final = Path(__file__).parents[1] / "kernels"
FOLDERS: Final = ("twins", "global", "clean", "blackwell")
_ADDRESS: Final = 8  # bytes of a parameter that may be a pointer
_STRUCT: Final = 64  # bytes of one with integers
# Instructions of a kernel that is not plain: other synchronisation, strong accesses, memory of other CTAs, calls.
_OTHER: Final = re.compile(
    r"\b(atom|red|mbarrier|fence|membar|barrier|mapa|wgmma|tcgen05|tensormap|clusterlaunchcontrol|cp\.async\.bulk|cp\.reduce|st\.async"
    r"|st\.bulk|elect|griddepcontrol|tex|suld|sust|sured|wmma|call|consan_\w+)\b|\.(volatile|acquire|release|relaxed)\b|::cluster"
    r"|bar\.(sync|arrive|red)\s+%?\w+,|bar\.\w+\s+(?![\s0])|bar\.warp\.sync\s+(?![\s-])"
)


def row(path: Path, within: float, *, racy: bool) -> dict[str, Any]:
    """The answer for one form of a kernel."""
    given, ptx = read(path), kernel(path, racy).ptx
    module = parse(ptx, path.name)
    entry = next(each for each in module.functions if each.kind == "entry")
    pointers = [place for place, each in enumerate(entry.params) if each.nbytes == _ADDRESS]
    began = time.process_time()
    assumed: list[Assumption] = [lambda environment: grid_of(given, environment)]
    proof = prove(entry, module, given.block, pointers, assumed, within, notes=True)
    answer = proof.answer
    fixed = [*assumed, *_integers(given)]
    if answer != PROVEN and prove(entry, module, given.block, pointers, fixed, within, notes=True).answer == PROVEN:
        answer = "these integers"
    text = "\n".join(line for line in re.sub(r"//.*", "", ptx).splitlines() if not line.lstrip().startswith("."))
    return {
        "kernel": f"{path.parent.name}/{path.stem}",
        "races": racy and races(path),
        "plain": not _OTHER.search(text),
        "answer": answer,
        "why": [f"{each.why} {each.lines}" for each in proof.reasons[:3]],
        "notes": [f"{each.why} {each.lines}" for each in proof.alike],
        "seconds": round(time.process_time() - began, 2),
    }


def _integers(given: KernelFile) -> Iterator[Assumption]:
    """Each word of the parameters of the header's launch has its value, where it is an integer."""
    try:
        parameters = Placement(VirtualBackend()).parameters(given.parameters(given.fresh_args()), given.path.stem)
    except ConsanError:  # textures
        return
    for place, data in enumerate(parameters):
        words = ((offset, bits) for bits in (32, 64) for offset in range(0, len(data) - bits // 8 + 1, bits // 8))
        for offset, bits in words if len(data) <= _STRUCT else ():
            yield partial(_has_value, place, offset, bits, int.from_bytes(data[offset : offset + bits // 8], "little", signed=True))


def _has_value(place: int, offset: int, bits: int, value: int, environment: Environment) -> Formula:
    """A word of the parameters has a value; a pointer has any."""
    found = environment.word(place, offset, bits)
    return z3.BoolVal(True) if found.base is not None else found.term == value


def main() -> None:
    """Print a line for each kernel, and the sums."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--racy", action="store_true")
    parser.add_argument("--within", type=float, default=20.0)
    parser.add_argument("--share", default="0/1", metavar="K/N", help="only every Nth kernel, from number K on")
    options = parser.parse_args()
    first, step = map(int, options.share.split("/"))
    rows = []
    for path in [path for folder in options.folders for path in sorted((KERNELS / folder).glob("*.cu"))][first::step]:
        rows.append(row(path, options.within, racy=options.racy))
        print(json.dumps(rows[-1]), flush=True)
    seconds = sorted(each["seconds"] for each in rows)
    print(f"of {len(rows)} kernels, seconds: median {seconds[len(rows) // 2]}, most {seconds[-1]}")
    for plain in (True, False):
        print("plain:" if plain else "others:", dict(collections.Counter(each["answer"] for each in rows if each["plain"] is plain)))


if __name__ == "__main__":
    main()
