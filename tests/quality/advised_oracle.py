"""Whether the independent oracle agrees with `consan advise` on real kernels, as they are and with synchronisation added on purpose.

Usage: PYTHONPATH=tests:tests/real:tests/oracle python tests/quality/advised_oracle.py [--schedules N] [NAME ...]: all that `advise` says
may go together is taken out, and the oracle judges what is left in N schedules: a line for each kernel and kind of addition. What the
oracle does not see, it does not judge (mutation_oracle.py). It has an error for copies of zeros in flight at the end (BOUNDS.md, B16).
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator

import hopper_cases
import pytest
from hopper_cases import FAULTS, HOPPER_CASES
from mutation_oracle import opinion
from real_cases import CASES, Case
from real_run import ptx_of
from test_added_synchronisation import ADDED, advice_of, with_added

from consan.reports.formats.advised import AdviceLine
from consan.reports.source.patches import edited

AS_IT_IS = "as it is"


def kernels(case: Case, ptx: str) -> Iterator[tuple[str, str, list[AdviceLine]]]:
    """The kernel, and each with something added at the first place that runs; and the list for it."""
    yield AS_IT_IS, ptx, advice_of(case, ptx)
    for kind, added in ADDED.items():
        if kind != "fence by all" or case in HOPPER_CASES:
            yield from ((kind, *found) for found in itertools.islice(with_added(case, ptx, added), 1))


def told(case: Case, ptx: str, lines: list[AdviceLine], schedules: int) -> str:
    """What the oracle says of a kernel without what may go together."""
    edits = [edit for line in lines if line.together for edit in line.edits]
    if not edits:
        return "nothing may go"
    begin = time.perf_counter()
    said = opinion(ptx, edited(ptx, edits), lambda: case.launch("small", 0), schedules)
    return f"{len(edits)} instructions may go: {said}, {time.perf_counter() - begin:.0f} s"


def main() -> None:
    """Ask about each kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--schedules", type=int, default=1000, metavar="N")
    options = parser.parse_args()
    for case in (*CASES, *HOPPER_CASES):
        if case.name in FAULTS or case.reads_past or (options.names and case.name not in options.names):
            continue
        try:
            ptx = ptx_of(case.name, hopper_cases.ARCH if case in HOPPER_CASES else "sm_80")
            for kind, text, lines in kernels(case, ptx):
                print(f"{case.name:<40} {kind:<16} {told(case, text, lines, options.schedules)}", flush=True)
        except pytest.skip.Exception as why:
            print(f"{case.name:<40} {why}", flush=True)


if __name__ == "__main__":
    main()
