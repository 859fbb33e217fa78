"""How often consan and the oracle differ: random programs, pair by pair, as a table.

    python tests/oracle/measure.py synchronous asynchronous --programs 800 --seed 1 --keep DIR

Each strategy of oracle_strategies.py makes so many programs, 8 to a kernel. A program on which the two disagree is reduced, operation
by operation, and written to DIR as a file that test_regressions.py can run.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from draws import examples
from oracle_compare import Agreement, compare
from oracle_programs import Batch, Program
from oracle_programs_global import GlobalBatch
from oracle_programs_multimem import MultimemBatch
from oracle_run import oracle
from oracle_strategies import OF_GRIDS, OF_RANKS, STRATEGIES, batches
from oracle_verdict import GLOBAL

import consan
from consan.checker.repairs import fixes
from consan.session.modules.device import shared_device

SCHEDULES = 4  # of plain runs, where the first differs
DIFFERENCES = ("missed", "false", "mild")  # what is kept; `shadowed` and `severity` are too many


@dataclass
class Row:
    """One line of the table: programs run, and pairs of sites that at least one of the two names."""

    programs: int = 0
    pairs: int = 0
    exact: int = 0
    shadowed: int = 0
    merged: int = 0
    severity: int = 0
    mild: int = 0
    missed: int = 0
    false: int = 0
    incomplete: int = 0
    seconds: float = 0.0
    examples: list[str] = field(default_factory=list)

    def add(self, found: Agreement, programs: int) -> None:
        """Count a kernel."""
        self.programs += programs
        self.exact += found.exact
        for name in ("shadowed", "merged", "severity", "mild", "missed", "false"):
            setattr(self, name, getattr(self, name) + len(getattr(found, name)))
        self.pairs = self.exact + self.shadowed + self.merged + self.missed


def arguments() -> list[Any]:
    """What a random program is given."""
    return [np.arange(4096, dtype=np.int32), np.zeros(4096, np.int32)]


def agreement(batch: Batch, schedule: int = 0) -> tuple[Agreement, Any]:
    """Both verdicts on a kernel, held against each other, and consan's report.

    Some programs hang, or arrive at a barrier too often, in some schedules only, and with hooks the machine's is another. So a difference
    is one if the oracle has it in several schedules; and that all threads wait is what the machine has seen, no claim of the shadow's: what
    hangs in no plain run is not compared. With several devices, consan must have it in several schedules as well: who comes last there, and
    whether a poll comes before its flag, is seldom the same in two runs.
    """
    found, report = _agreement(batch, schedule)
    for another in range(schedule + 1, schedule + SCHEDULES) if _ranks(batch) > 1 else ():
        if not found.wrong:
            break
        found, report = min((found, report), _agreement(batch, another), key=lambda one: len(one[0].wrong))
    shared_device("cpu").modules.clear()  # every kernel is another, and a decoded one takes 50 MB
    return found, report


def _ranks(batch: Batch) -> int:
    return batch.ranks if isinstance(batch, GlobalBatch) else 1


def _given(batch: Batch, *, many: bool) -> list[Any]:
    """The arguments of one launch: new ones, since a launch leaves its results in them. `many`: the text may have `multimem`."""
    if isinstance(batch, MultimemBatch):
        return batch.given(many=many)
    args, ranks = arguments(), _ranks(batch)
    return [[*args, rank] for rank in range(ranks)] if ranks > 1 else args


def _agreement(batch: Batch, schedule: int) -> tuple[Agreement, Any]:
    kernel, ctas = consan.Kernel(batch.ptx), batch.grid
    alone = consan.Kernel(batch.oracle_ptx) if isinstance(batch, MultimemBatch) else kernel
    of_grid, ranks = isinstance(batch, GlobalBatch), _ranks(batch)
    how: dict[str, Any] = {"engine": "record", "global_memory": "on"} if of_grid else {}
    with mock.patch.object(fixes, "MOST_PAIRS", 0):  # fixes are not compared, and take ten times as long as all else
        report = consan.launch(kernel, ctas, batch.threads, _given(batch, many=True), device="cpu", seed=schedule, ranks=ranks, **how)
    in_full = of_grid or "global-memory" in report.checked
    global_races = in_full or any(finding.kind == GLOBAL for finding in report.findings)
    hung, differs = any(finding.kind == "deadlock" for finding in report.findings), None
    for plain in range(schedule, schedule + SCHEDULES):
        given = _given(batch, many=False)
        verdict = oracle(alone, ctas, batch.threads, given, seed=plain, global_memory=global_races, ranks=ranks)
        if hung and "deadlock" not in verdict.kinds:
            continue
        found = compare(verdict, report)
        if not in_full:  # the report says so, and need not name them all
            found.missed = [line for line in found.missed if GLOBAL not in line]
        differs = found if differs is None else _in_both(found, differs)
        if not differs.wrong:
            break
    return differs or Agreement(), report


def _in_both(found: Agreement, before: Agreement) -> Agreement:
    """What the oracle has in this schedule, with the differences that it had in the earlier ones, too."""
    kept = {}
    for what in DIFFERENCES:
        known = {_subject(line) for line in getattr(before, what)}
        kept[what] = [line for line in getattr(found, what) if _subject(line) in known]
    return replace(found, **kept)


def _subject(line: str) -> str:
    """A difference without what the oracle counted in one run."""
    return re.split(", (?:bytes|the oracle has) ", line)[0]


def reduced(program: Program, differs: Callable[[Program], bool]) -> Program:
    """The program without the parts that the difference does not need."""
    for k in reversed(range(len(program.operations))):
        while (found := next(filter(differs, program.smaller(k)), None)) is not None:
            shorter = len(found.operations) < len(program.operations)
            program = found
            if shorter:
                break
    return program


def keep(batch: Batch, what: str, path: Path) -> None:
    """Write the first program of a kernel on which the two differ, reduced."""

    def differences(program: Program) -> list[str]:
        found, report = agreement(replace(batch, programs=(program,)))
        return list(getattr(found, what)) if not any(f.kind == "deadlock" for f in report.findings) else []

    memory = " global=on" if isinstance(batch, GlobalBatch) else ""
    launch = f"// launch: grid={{}} block={batch.threads} verdict=violations{memory}\n"
    for program in batch.programs:
        if differences(program):
            least = reduced(program, lambda one: bool(differences(one)))
            notes = "".join(f"// {line}\n" for line in differences(least))
            path.write_text(replace(batch, programs=(least,)).ptx + launch.format(batch.ctas) + notes)
            return
    path.write_text(f"{batch.ptx}{launch.format(batch.grid)}// {what}, not with one program alone\n")


def measure(strategy: str, programs: int, number: int, directory: Path | None = None) -> Row:
    """Run programs of one strategy; the same number makes the same ones."""
    row, size = Row(), 2 if strategy in (*OF_GRIDS, *OF_RANKS) else 8
    start = time.monotonic()
    for batch in examples(batches(strategy, size), number, programs // size):
        found, report = agreement(batch)
        row.add(found, size)
        row.incomplete += report.verdict == "incomplete"
        for what in DIFFERENCES:
            if (lines := getattr(found, what)) and directory is not None:
                row.examples += lines
                keep(batch, what, directory / f"{what}-{strategy}-{number}-{row.programs}.ptx")
    row.seconds = time.monotonic() - start
    return row


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "strategies",
        nargs="*",
        default=list(STRATEGIES),
        help=f"of {', '.join([*STRATEGIES, *OF_GRIDS, *OF_RANKS])}; default: all of one CTA or cluster",
    )
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a directory for kernels on which the two disagree")
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    names = [one.name for one in fields(Row)][:-1]
    print("| strategy | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1))
    for strategy in options.strategies:
        row = measure(strategy, options.programs, options.seed, options.keep)
        print(f"| {strategy} | " + " | ".join(f"{getattr(row, name):,.0f}" for name in names) + " |", flush=True)
        for line in row.examples[:20]:
            print(f"    {line}", flush=True)


if __name__ == "__main__":
    main()
