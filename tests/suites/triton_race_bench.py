"""TritonRaceBench, the labelled kernels of triton-viz's race detector, on the virtual machine: one line for each launch, and a sum.

    .venv-triton/bin/python tests/suites/triton_race_bench.py CHECKOUT [NAME ...]     needs torch (CPU) and Triton

CHECKOUT is Deep-Learning-Profiling-Tools/triton-viz at 00bb8e9, of its branches that have the folder `evaluation`. Nothing of it is in this
repository. Each launch is one of its list, with its arguments, its grid and its label. A launch is found racy by an error of a race.
"""

from __future__ import annotations

import collections
import sys
import time
from typing import Any, Final

import consan.triton

RACES: Final = ("data-race", "global-race", "scope", "missing-wait", "missing-order")
RACY: Final = "race"
_LONGEST: Final = 60.0  # seconds of a launch: some wait for others


def judged(spec: Any) -> tuple[str, str]:
    """Where a launch counts, and what consan said of it."""
    began, ended = time.process_time(), ""
    with consan.triton.cpu(arch="sm_90", global_memory="on", timeout=_LONGEST, explore=2.0) as report:
        try:
            spec.kernel_fn[spec.grid](*spec.make_args(0), **spec.constexprs)
        except Exception as error:  # the next one may run
            ended = f"{type(error).__name__} {' '.join(str(error).split())[:160]}"
    kinds = sorted({f"{each.kind} {each.severity}" for each in report.findings if each.severity != "note"})
    found = any(each.kind in RACES and each.severity == "error" for each in report.findings)
    right = found if spec.expected == RACY else not kinds and report.verdict == "clean"
    column = ("TP" if right else "FN") if spec.expected == RACY else "TN" if right else "FP" if kinds else "not judged"
    why = "; ".join((*kinds, *report.incomplete, *([ended] if ended else [])))
    return column, f"{report.verdict}, {time.process_time() - began:.1f} s{': ' if why else ''}{why[:300]}"


def main() -> None:
    """Run those that the command line names, or all."""
    sys.path.insert(0, sys.argv[1])
    from evaluation.kernels.tritonracebench import CORPUS

    columns = collections.Counter[str]()
    for spec in CORPUS.specs:
        if spec.name in sys.argv[2:] or not sys.argv[2:]:
            column, said = judged(spec)
            columns[column] += 1
            print(f"| {spec.name} | {spec.expected} | {column} | {said} |", flush=True)
    print(dict(columns))


if __name__ == "__main__":
    main()
