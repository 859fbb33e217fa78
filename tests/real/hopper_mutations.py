"""Mutants of the clean kernels of `hopper_cases.py`: one synchronisation instruction is taken out or weakened in each.

A rule names a family of instructions and the texts to put in the place of one (CHANGES). A mutant is named by its rule, its number in
the text among that rule's instructions, and the change: `barrier 4 removed`. Instructions that no path reaches are mutated too.

A mutant runs with hooks on the virtual machine at the size "small": first in schedule 0, in which each copy and each product lands as
late as is legal, and where that reports nothing with the other schedules and sizes of VARIATIONS, until one reports. Reported means an
error; a warning that the kernel does not have as it is counts on its own. What the report of the kernel itself leaves open is not held
against a mutant.

Usage: PYTHONPATH=tests:tests/real python tests/real/hopper_mutations.py [NAME ...]: a line for each mutant, one for all silent ones of a
kernel in one text, then a table. NAME is part of a kernel's name; kernels that this machine cannot make are named and left out.

Not handled: two instructions at once, moved instructions, and what only other sizes reach.
"""

from __future__ import annotations

import argparse
import functools
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from unittest import mock

import hopper_cases
import pytest
from hopper_cases import ARCH, CLUSTER_CASES, HOPPER_CASES, RACY
from real_cases import Case
from real_run import ptx_of, run_checked, run_plain
from test_hopper_checked import FAULTS

from consan._errors import ConsanError
from consan.instrument.ptx import Edits, Immediate, Instruction, Module, parse
from consan.reports.model import Finding
from consan.session import Session

VARIATIONS = ((0, 4), (0, 7), (1, 3))  # schedule, and whole steps of K: a ring of four stages goes round twice in eight
SECONDS = 30.0  # of a launch; the slowest kernel takes three
CLEAN = {case.name: case for case in (*HOPPER_CASES, *CLUSTER_CASES) if case.name not in FAULTS and case.name not in RACY}


# -- what is done to an instruction ------------------------------------------------------------------------------------------------


def _guard(instruction: Instruction) -> str:
    predicate = instruction.predicate
    return f"@{'!' if predicate.negated else ''}{predicate.register} " if predicate else ""


def _with_last(instruction: Instruction, immediate: Callable[[int], int], operation: str) -> str:
    """The instruction with another last operand: computed here, or by `operation` into a register of its own."""
    last = instruction.operands[-1]
    head, _, _ = instruction.text.rpartition(last.text)
    if isinstance(last, Immediate):
        return f"{head}{immediate(int(last.value))};"
    return f"{{ .reg .b32 %mutated; {operation.format(last.text)}; {head}%mutated; }}"


def _removed(_: Instruction) -> str:
    return ""


def _one_more(instruction: Instruction) -> str:
    return _with_last(instruction, lambda n: n + 1, "add.u32 %mutated, {}, 1")


def _one_less(instruction: Instruction) -> str:
    return _with_last(instruction, lambda n: n - 1, "sub.u32 %mutated, {}, 1")


def _halved(instruction: Instruction) -> str:
    return _with_last(instruction, lambda n: n // 2, "shr.u32 %mutated, {}, 1")


def _true_at_once(instruction: Instruction) -> str:
    return f"{_guard(instruction)}setp.eq.u32 {instruction.operands[0].text}, 0, 0;"


Change = Callable[[Instruction], str]
REMOVED: dict[str, Change] = {"removed": _removed}
LENIENT = {**REMOVED, "+1": _one_more}

# rule -> which opcodes, and what is done to each. The first that matches counts.
CHANGES: dict[str, tuple[str, dict[str, Change]]] = {
    "warp barrier": (r"bar(rier)?\.warp\.sync", REMOVED),
    "barrier": (r"(bar|barrier)\.(cta\.|cluster\.)?(sync|arrive|wait|red)\b", REMOVED),
    "mbarrier wait": (r"mbarrier\.(try|test)_wait\b", {"true at once": _true_at_once}),
    "expect_tx": (r"mbarrier\.(arrive\.)?expect_tx\b", {**REMOVED, "halved": _halved}),
    "arrival": (r"(cp\.async\.)?mbarrier\.arrive\b", REMOVED),
    "count": (r"mbarrier\.init\b", {"+1": _one_more, "-1": _one_less}),
    "bulk wait": (r"cp\.async\.bulk\.wait_group\b", LENIENT),
    "bulk commit": (r"cp\.async\.bulk\.commit_group\b", REMOVED),
    "copy wait": (r"cp\.async\.wait_group\b", LENIENT),
    "copy wait all": (r"cp\.async\.wait_all\b", REMOVED),
    "copy commit": (r"cp\.async\.commit_group\b", REMOVED),
    "wgmma wait": (r"wgmma\.wait_group\b", LENIENT),
    "wgmma commit": (r"wgmma\.commit_group\b", REMOVED),
    "wgmma fence": (r"wgmma\.fence\b", REMOVED),
    "proxy fence": (r"fence\.proxy\b", REMOVED),
    "fence": (r"(fence|membar)\.", REMOVED),
}


# -- mutants -----------------------------------------------------------------------------------------------------------------------


def _rewritten(module: Module, texts: Iterable[tuple[Instruction, str]]) -> str:
    edits = Edits(module)
    for instruction, text in texts:
        edits.replace(instruction, text)
    return edits.apply()


@dataclass(frozen=True)
class Mutant:
    """One changed instruction of a kernel."""

    name: str
    instruction: Instruction = field(repr=False)
    text: str = field(repr=False)
    module: Module = field(repr=False)

    @property
    def ptx(self) -> str:
        """The kernel with the change."""
        return together([self])

    @property
    def trapped(self) -> str:
        """The kernel with a trap in this place."""
        return _rewritten(self.module, [(self.instruction, f"{_guard(self.instruction)}trap;")])

    @property
    def place(self) -> tuple[object, ...]:
        """Where it comes from: of like instructions, such as an unrolled loop has, all have one place."""
        loc = self.instruction.loc
        return self.name.rpartition(" ")[2], self.instruction.opcode, *((loc.line, loc.inlined_at) if loc else ())


def together(several: Sequence[Mutant]) -> str:
    """The kernel with several changes, of different instructions."""
    return _rewritten(several[0].module, [(mutant.instruction, mutant.text) for mutant in several])


def _rule_of(instruction: Instruction) -> str | None:
    return next((rule for rule, (opcodes, _) in CHANGES.items() if re.match(opcodes, instruction.opcode)), None)


def mutants(ptx: str) -> Iterator[Mutant]:
    """All of a kernel's, in the order of its text."""
    module = parse(ptx)
    numbers = dict.fromkeys(CHANGES, 0)
    for instruction in (i for function in module.functions for i in function.instructions()):
        rule = _rule_of(instruction)
        if rule is None:
            continue
        numbers[rule] += 1
        for change, text in CHANGES[rule][1].items():
            yield Mutant(f"{rule} {numbers[rule]} {change}", instruction, text(instruction), module)


# -- runs --------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """One run: kinds of the errors, and of what is less than an error; `trouble`: why the report is not the whole truth."""

    errors: frozenset[str]
    others: frozenset[str]
    wrong: bool
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
        words = [*sorted(self.errors), *(f"({kind})" for kind in sorted(self.others)), *self.trouble]
        return ", ".join(words + ["wrong result"] * self.wrong) or "silent"


def _kinds(findings: tuple[Finding, ...], error: bool) -> frozenset[str]:
    return frozenset(f.kind if error else f"{f.kind} {f.severity}" for f in findings if (f.severity == "error") == error)


def run(case: Case, ptx: str, seed: int = 0, steps: int = hopper_cases.STEPS) -> Outcome:
    """One run with hooks, in a session of its own: a broken kernel leaves nothing behind for the next."""
    started = time.perf_counter()
    session = Session(device="cpu", seed=seed, timeout=SECONDS, shadow_memory=64 << 20, private=True)
    with mock.patch.object(hopper_cases, "STEPS", steps):
        launch = case.launch("small", 0)
    try:
        report = run_checked(ptx, launch, session)[1]
    except ConsanError as error:
        return Outcome(frozenset(), frozenset(), False, (f"refused: {str(error).splitlines()[0]}",), seed)
    finally:
        session.close()
    try:
        launch.check()
        wrong = False
    except AssertionError:
        wrong = True
    errors, others = _kinds(report.findings, True), _kinds(report.findings, False)
    return Outcome(errors, others, wrong, tuple(report.incomplete), seed, time.perf_counter() - started)


@functools.cache
def unchanged(name: str) -> Outcome:
    """The kernel as it is, schedule 0."""
    return run(CLEAN[name], ptx_of(name, ARCH))


@functools.lru_cache(maxsize=1)
def _runs_over(name: str, trapped: str) -> bool:
    launch, backend = CLEAN[name].launch("small", 0), Session(device="cpu").backend
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
    usual = unchanged(name)
    return replace(found, others=found.others - usual.others, trouble=tuple(t for t in found.trouble if t not in usual.trouble))


def outcome(name: str, mutant: Mutant) -> Outcome:
    """The first run that reports or cannot be judged, or else the silent one that tells most."""
    silent = []
    for seed, steps in VARIATIONS:
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
    classes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))

    def __str__(self) -> str:
        return " | ".join(map(str, ["", self.name, self.mutants, self.reached, *self.classes.values(), ""])).strip()


def _tell(name: str, mutant: str, words: str) -> None:
    print(f"{name}: {mutant}: {words}", flush=True)


def _judge_one(name: str, mutant: Mutant, row: Row) -> str:
    row.mutants += 1
    if not reached(name, mutant):
        return "not reached"
    found = outcome(name, mutant)
    row.reached += 1
    row.classes[class_of(found)] += 1
    return f"{class_of(found)}: {found} (schedule {found.seed})"


def judge(name: str) -> Row | None:
    """All mutants of a kernel, one line for each, then the silent ones all at once; None where this machine cannot make it."""
    try:
        ptx = ptx_of(name, ARCH)
    except pytest.skip.Exception as skipped:
        _tell(name, "left out", str(skipped))
        return None
    row, silent = Row(name), {}
    for mutant in mutants(ptx):
        words = _judge_one(name, mutant, row)
        _tell(name, mutant.name, f"{words} ({mutant.instruction.opcode}, line {mutant.instruction.line})")
        if words.startswith("silent"):
            silent[mutant.instruction.start] = mutant
    if len(silent) > 1:
        _tell(name, f"{len(silent)} silent ones at once", str(_told(name, run(CLEAN[name], together([*silent.values()])))))
    print(row, flush=True)
    return row


def main() -> int:
    """Print a line for each mutant, then the table."""
    parser = argparse.ArgumentParser(description="Mutants of the clean Hopper kernels.")
    parser.add_argument("names", nargs="*", help="part of a kernel's name; the order counts")
    wanted = parser.parse_args().names or [""]
    names = dict.fromkeys(name for part in wanted for name in CLEAN if part in name)
    rows = [row for row in map(judge, names) if row]
    heads = ["kernel", "mutants", "reached", *CLASSES]
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}", *rows, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
