"""Mutants of the clean real kernels: one synchronisation instruction is taken out or weakened in each.

Kernels are those of tests/real: `real_cases.py`, for sm_80, and `hopper_cases.py`, but for what has faults of its own. A rule names a
family of instructions and the texts to put in the place of one (`mutation_rules.py`). A mutant is named by its rule, its number in the
text among that rule's instructions, and the change: `barrier 4 removed`. Instructions that no path reaches are mutated too.

A mutant runs with hooks on the virtual machine at the size "small": first in schedule 0, in which each copy and each product lands as
late as is legal, and where that reports nothing with the kernel's other schedules and sizes (`Kernel.variations`), until one reports.
Reported means an error that the kernel does not have as it is; a warning counts on its own. What the report of the kernel itself
leaves open is not held against a mutant.

Usage: PYTHONPATH=tests:tests/real:tests/oracle python tests/quality/mutations.py [NAME ...]: a line for each mutant, one for all silent
ones of a kernel in one text, then a table with each kernel's score, and what is known of the silent ones (`survivors.py`). NAME is a
kernel's name, or part of several; kernels that this machine cannot make are named and left out. `--oracle N` runs nothing with hooks, and
asks the independent oracle, in N schedules, about each one that `survivors.py` names.

Not handled: two instructions at once, moved instructions, and what only other sizes reach.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from unittest import mock

import hopper_cases
import pytest
from hopper_cases import CLUSTER_CASES, FAULTS, HOPPER_CASES, RACY
from mutation_oracle import opinion
from mutation_rules import Mutant, mutants, together
from real_cases import CASES, Case, Launch
from real_run import ptx_of, run_checked, run_plain
from survivors import SURVIVORS, reason_of

from consan._errors import ConsanError
from consan.reports.model import Finding
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

SECONDS = 30.0  # of a launch; the slowest kernel takes three

# Schedule, and whole steps of K: a ring of four stages goes round twice in eight.
BY_STEPS = ((0, 4), (0, 7), (1, 3))
BY_SCHEDULE = tuple((seed, hopper_cases.STEPS) for seed in range(3))


@dataclass(frozen=True)
class Kernel:
    """A clean kernel."""

    case: Case
    arch: str

    @property
    def ptx(self) -> str:
        """Its text; skips where this machine cannot make it."""
        return ptx_of(self.case.name, self.arch)

    def launch(self, steps: int = hopper_cases.STEPS) -> Launch:
        """The launch of the size "small"."""
        with mock.patch.object(hopper_cases, "STEPS", steps):
            return self.case.launch("small", 0)

    @functools.cached_property
    def variations(self) -> tuple[tuple[int, int], ...]:
        """Schedules and steps in which a mutant is run: several sizes, or several schedules where it has one size."""
        some, more = ([array.shape for array in self.launch(steps).buffers()] for _, steps in BY_STEPS[:2])
        return BY_SCHEDULE if some == more else BY_STEPS


def _clean() -> Iterator[Kernel]:
    yield from (Kernel(case, "sm_80") for case in CASES)
    for case in (*HOPPER_CASES, *CLUSTER_CASES):
        if case.name not in FAULTS and case.name not in RACY:
            yield Kernel(case, hopper_cases.ARCH)


CLEAN = {kernel.case.name: kernel for kernel in _clean()}


# -- runs --------------------------------------------------------------------------------------------------------------------------


FindingKey = tuple[str, frozenset[int]]  # the kind of a finding, and lines of the PTX, which a mutant does not move


@dataclass(frozen=True)
class Outcome:
    """One run: the errors, and what is less than an error; `trouble`: why the report is not the whole truth."""

    errors: frozenset[FindingKey] = frozenset()
    others: frozenset[FindingKey] = frozenset()
    wrong: bool = False
    trouble: tuple[str, ...] = ()
    seed: int = 0
    seconds: float = 0.0

    @property
    def warned(self) -> bool:
        """Whether there is something less than an error."""
        return bool(self.others)

    @property
    def reported(self) -> bool:
        """Whether there is an error."""
        return bool(self.errors)

    def __str__(self) -> str:
        errors, others = ({kind for kind, _ in found} for found in (self.errors, self.others))
        words = [*sorted(errors), *(f"({kind})" for kind in sorted(others)), *self.trouble]
        return ", ".join(words + ["wrong result"] * self.wrong) or "silent"


def _key_of(finding: Finding) -> FindingKey:
    words = finding.kind if finding.severity == "error" else f"{finding.kind} {finding.severity}"
    return words, frozenset(access.ptx_line for access in finding.pair)


def run(kernel: Kernel, ptx: str, seed: int = 0, steps: int = hopper_cases.STEPS) -> Outcome:
    """One run with hooks, in a session of its own: a broken kernel leaves nothing behind for the next."""
    started = time.perf_counter()
    session = Session(SessionOptions(device="cpu", seed=seed, timeout=SECONDS, shadow_memory=64 << 20), private=True)
    launch = kernel.launch(steps)
    try:
        report = run_checked(ptx, launch, session)[1]
    except ConsanError as error:
        return Outcome(trouble=(f"refused: {str(error).splitlines()[0]}",), seed=seed)
    finally:
        session.close()
    try:
        launch.check()
        wrong = False
    except AssertionError:
        wrong = True
    errors = frozenset(_key_of(found) for found in report.findings if found.severity == "error")
    others = frozenset(_key_of(found) for found in report.findings if found.severity != "error")
    return Outcome(errors, others, wrong, tuple(report.incomplete), seed, time.perf_counter() - started)


@functools.cache
def usual(name: str) -> Outcome:
    """What is said of the kernel as it is, in all of its variations together."""
    every = [run(CLEAN[name], CLEAN[name].ptx, *how) for how in CLEAN[name].variations]
    return Outcome(
        frozenset(told for each in every for told in each.errors),
        frozenset(told for each in every for told in each.others),
        any(each.wrong for each in every),
        tuple(words for each in every for words in each.trouble),
    )


@functools.lru_cache(maxsize=1)
def _runs_over(name: str, trapped: str) -> bool:
    launch, backend = CLEAN[name].launch(), Session(SessionOptions(device="cpu")).backend
    try:
        run_plain(trapped, launch, backend)
    except AssertionError:
        return True
    return False


def reached(name: str, mutant: Mutant) -> bool:
    """Whether any thread comes to the place of a mutant in the first variation."""
    return _runs_over(name, mutant.trapped)


def _told(name: str, found: Outcome) -> Outcome:
    """Without what the unchanged kernel's report says too."""
    known = usual(name)
    trouble = tuple(words for words in found.trouble if words not in known.trouble)
    return replace(found, errors=found.errors - known.errors, others=found.others - known.others, trouble=trouble)


def outcome(name: str, mutant: Mutant) -> Outcome:
    """The first run that reports or cannot be judged, or else the silent one that tells most."""
    silent = []
    for seed, steps in CLEAN[name].variations:
        found = _told(name, run(CLEAN[name], mutant.ptx, seed, steps))
        if found.reported or found.trouble:
            return found
        silent.append(found)
    return max(silent, key=lambda each: (each.wrong, each.warned))


# -- table -------------------------------------------------------------------------------------------------------------------------

# What came of a mutant that is reached, the first that holds.
CLASSES: dict[str, Callable[[Outcome], bool]] = {
    "reported as error": lambda found: found.reported,
    "not judged": lambda found: bool(found.trouble),
    "warned": lambda found: found.warned,
    "wrong result but silent": lambda found: found.wrong,
    "silent": lambda found: True,
}


def class_of(found: Outcome) -> str:
    """One of CLASSES."""
    return next(name for name, holds in CLASSES.items() if holds(found))


@dataclass
class Row:
    """One kernel's counts."""

    name: str
    mutants: int = 0
    reached: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)  # by class, of those that are not reported

    def count(self, found: Outcome, mutant: str) -> None:
        """One that is reached."""
        self.reached += 1
        self.classes[class_of(found)] += 1
        if not found.reported:
            self.reasons[class_of(found), reason_of(self.name, mutant)] += 1

    @property
    def equivalent(self) -> int:
        """How many of the silent ones change nothing that could be seen."""
        return sum(number for (known, reason), number in self.reasons.items() if known == "silent" and reason.startswith("equivalent"))

    def score(self, *classes: str) -> str:
        """The share of some classes in what is reached and not equivalent."""
        found, faults = sum(self.classes[each] for each in classes), self.reached - self.equivalent
        return f"{found} of {faults} ({found / faults:.1%})" if faults else "-"

    def __str__(self) -> str:
        counts = (self.classes[name] for name in CLASSES)
        scores = self.score("reported as error"), self.score("reported as error", "warned")
        return " | ".join(map(str, ["", self.name, self.mutants, self.reached, *counts, self.equivalent, *scores, ""])).strip()


def _all(rows: Sequence[Row]) -> Row:
    """The last line."""
    total = Row("all")
    for row in rows:
        for each in fields(Row)[1:]:
            setattr(total, each.name, getattr(total, each.name) + getattr(row, each.name))
    return total


def _print_table(rows: Sequence[Row]) -> None:
    heads, total = ["kernel", "mutants", "reached", *CLASSES, "of these equivalent", "score", "score with warnings"], _all(rows)
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}", *rows, total, sep="\n")
    print("\n| number | what came of them | why |\n|---|---|---|")
    for key, number in total.reasons.most_common():
        where = ", ".join(f"{row.name} {row.reasons[key]}" for row in rows if row.reasons[key])
        print(f"| {number} | {key[0]} | {key[1]} ({where}) |")


def _tell(name: str, mutant: str, words: str) -> None:
    print(f"{name}: {mutant}: {words}", flush=True)


def _judge_one(name: str, mutant: Mutant, row: Row) -> str:
    row.mutants += 1
    if not reached(name, mutant):
        return "not reached"
    found = outcome(name, mutant)
    row.count(found, mutant.name)
    return f"{class_of(found)}: {found} (schedule {found.seed})"


def judge(name: str) -> Row:
    """All mutants of a kernel, one line for each, then the silent ones all at once."""
    row, silent = Row(name), {}
    for mutant in mutants(CLEAN[name].ptx):
        words = _judge_one(name, mutant, row)
        _tell(name, mutant.name, f"{words} ({mutant.instruction.opcode}, line {mutant.instruction.line})")
        if words.startswith("silent"):
            silent[mutant.instruction.start] = mutant
    if len(silent) > 1:
        _tell(name, f"{len(silent)} silent ones at once", str(_told(name, run(CLEAN[name], together([*silent.values()])))))
    print(row, flush=True)
    return row


def ask(name: str, schedules: int) -> None:
    """What the oracle says of each mutant that is known to be silent."""
    kernel = CLEAN[name]
    for mutant in mutants(kernel.ptx):
        if mutant.name in SURVIVORS.get(name, {}):
            said = opinion(kernel.ptx, mutant.ptx, kernel.launch, schedules)
            _tell(name, mutant.name, f"oracle: {said}; {reason_of(name, mutant.name)}")


def _can_be_made(name: str) -> bool:
    try:
        return bool(CLEAN[name].ptx)
    except pytest.skip.Exception as skipped:
        _tell(name, "left out", str(skipped))
        return False


def main() -> int:
    """Print a line for each mutant, then the table."""
    parser = argparse.ArgumentParser(description="Mutants of the clean real kernels.")
    parser.add_argument("names", nargs="*", help="a kernel's name, or part of several; the order counts")
    parser.add_argument("--oracle", type=int, metavar="N", help="ask the oracle, in N schedules, about what is known to be silent")
    options = parser.parse_args()
    names = dict.fromkeys(name for part in options.names or [""] for name in ([part] if part in CLEAN else CLEAN) if part in name)
    made = filter(_can_be_made, names)
    if options.oracle:
        for name in made:
            ask(name, options.oracle)
    else:
        _print_table([judge(name) for name in made])
    return 0


if __name__ == "__main__":
    sys.exit(main())
