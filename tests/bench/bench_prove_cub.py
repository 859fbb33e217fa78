"""How many of CUB's clean collectives (`tests/suites/cub_cases.py`) `consan prove` proves, with the grid of the case: a JSON object a line.

    PYTHONPATH=tests/suites python tests/bench/bench_prove_cub.py [--within SECONDS] [--share K/N]

`launch`: proven for the integers of the case, too. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import collections
import json
import time
from typing import Any, Final

import cub_cases
from suite_model import CLEAN, Case

from consan.prove.environment import Environment
from consan.prove.proof import PROVEN, prove
from consan.prove.solver import Formula, z3

_ADDRESS: Final = 8  # bytes of a parameter that may be a pointer


def row(case: Case, within: float) -> dict[str, Any]:
    """The answer for one case."""
    kernel = case.kernel()
    module, entry = kernel.module, kernel.function
    pointers = [place for place, each in enumerate(entry.params) if each.nbytes == _ADDRESS]

    def grid(environment: Environment) -> Formula:
        extents = (case.grid, 1, 1)
        return z3.And(*(each.term == extent for each, extent in zip(environment.grid, extents, strict=True)))

    began = time.process_time()
    proof = prove(entry, module, (case.block, 1, 1), pointers, [grid], within)
    return {
        "case": case.name,
        "answer": PROVEN if proof.answer == PROVEN else "unknown",
        "why": [f"{each.why} {each.lines}" for each in proof.reasons[:3]],
        "seconds": round(time.process_time() - began, 2),
    }


def main() -> None:
    """Print a line for each case, and the sums."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--within", type=float, default=10.0)
    parser.add_argument("--share", default="0/1", metavar="K/N", help="only every Nth case, from number K on")
    options = parser.parse_args()
    first, step = map(int, options.share.split("/"))
    rows = []
    for case in [each for each in cub_cases.cases() if each.label == CLEAN][first::step]:
        rows.append(row(case, options.within))
        print(json.dumps(rows[-1]), flush=True)
    print(f"of {len(rows)}:", dict(collections.Counter(each["answer"] for each in rows)))


if __name__ == "__main__":
    main()
