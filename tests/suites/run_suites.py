"""Labelled kernels through consan on the virtual machine: a table of true and false positives and negatives.

    python tests/suites/run_suites.py                          CUB's collectives (cub_cases.py), with the oracle's opinion
    python tests/suites/run_suites.py --only BlockScan --full  some of them, each on a line of its own
    python tests/suites/run_suites.py --cutlass                CUTLASS's kernels (cutlass_cases.py)
    python tests/suites/run_suites.py --cases LIST.json        launches of kernels that are elsewhere; the list has Case's fields

Prints the summary, every case that a person has to look at, and with --full all cases. README.md has the results.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import cub_cases
from suite_model import Outcome, judge_all, read_cases, summary

HEAD = "| kernels | case | label | consan | oracle | counts as |\n|---|---|---|---|---|---|"


def _judged(options: argparse.Namespace) -> Iterator[Outcome]:
    if options.cutlass:
        import cutlass_cases

        return cutlass_cases.judge_all(options.only)
    cases = read_cases(options.cases) if options.cases else cub_cases.cases()
    chosen = [case for case in cases if options.only in f"{case.group} {case.name}"]
    return judge_all(chosen, with_oracle=not options.no_oracle)


def _told(outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
    for outcome in outcomes:
        print(f"{outcome.seconds:5.1f} s  {outcome.line()}", file=sys.stderr, flush=True)
        yield outcome


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=Path, metavar="LIST.json", help="launches to make instead of CUB's")
    parser.add_argument("--cutlass", action="store_true", help="CUTLASS's kernels instead of CUB's")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose group or name contains this")
    parser.add_argument("--full", action="store_true", help="every case on a line of its own")
    parser.add_argument("--no-oracle", action="store_true", help="do not ask the oracle")
    options = parser.parse_args()
    start = time.monotonic()
    outcomes = list(_told(_judged(options)))
    shown = [outcome for outcome in outcomes if options.full or outcome.strange]
    print(summary(outcomes))
    print("\n" + "\n".join([HEAD, *(outcome.line() for outcome in shown)]))
    print(f"\n{len(outcomes)} launches in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
