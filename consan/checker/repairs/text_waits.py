"""Repairs of waits for phases of mbarriers, as edits of the text (see text_repairs.py).

A wait is repeated until it returns true, its parity changes with the phases, it is for another mbarrier, or a thread that arrives waits
for the phase of its arrival; an arrival expects the bytes, and the count includes it.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from consan.checker.repairs.edits import Edit
from consan.checker.repairs.forms import RepairStep
from consan.checker.repairs.text_paths import PathForms, TextRepair, loops_around
from consan.instrument import effects
from consan.instrument.control_flow import definitions, key_of, keys_read, written
from consan.instrument.ptx import Address, Function, Immediate, Instruction, Symbol
from consan.instrument.ptx.mangled import source_name
from consan.instrument.waits.given_up import given_up

_OF_PHASES: Final = ("data-race", "missing-wait", "uninitialized-read", "barrier-misuse", "deadlock", "lifetime")
_TOO_EARLY: Final = ("data-race", "missing-wait", "uninitialized-read")
_STAGES: Final = (1, 2, 4, 3)  # mbarriers that a wait is for in turn
COUNTED: Final = ", and changes after"  # a parity that a register of the repair counts: no line of the source has it
_WAIT: Final = re.compile(r"mbarrier\.(?:try|test)_wait\b")
_PARITY: Final = re.compile(r"\.parity\b")
_EXPECT: Final = re.compile(r"mbarrier\.expect_tx(?:\.relaxed\.\w+)?")
_OWN_ARRIVAL: Final = re.compile(r"mbarrier\.arrive\b(?!.*(?:noComplete|cluster))")  # returns the phase
_UNCOUNTED: Final = re.compile(r"(@\S+\s+)?mbarrier\.arrive(?!.*expect_tx)\S*\s+(?:_|%\w+)\s*,[^,]*$")  # a count would be another operand
_TRACKING: Final = "cp.async.mbarrier.arrive.noinc"
_TARGET: Final = re.compile(r"\.target\s+sm_(\d+)")
_At = tuple[Function, Instruction]


class WaitForms(PathForms):
    """The candidate repairs of waits for phases."""

    def _repeated(self) -> Iterator[TextRepair]:
        """Until the phase is over: the waits that nothing repeats, or that give up, then all."""
        waits = [each for each in self._waits() if each[1].predicate is None]
        gives_up = {each.start for function in self._functions for each in given_up(function)} if waits else set()
        once = [each for each in waits if each[1].start in gives_up or not _is_repeated(*each)]
        for found in dict.fromkeys(map(tuple, filter(None, (once, waits if once else [])))):
            texts = [f"{{ again: {self._blocking(each.text)} @!{each.operands[0].text} bra again; }}" for _, each in found]
            yield self._altered(found, texts, "in a loop until it returns true")

    def _constant(self) -> Iterator[TextRepair]:
        """A parity that changes, where it is always the same one."""
        yield from self._changing([each for each in self._parities() if _is_constant(*each)])

    def _alternating(self) -> Iterator[TextRepair]:
        """A parity that follows from how often the thread has waited."""
        yield from self._changing(self._parities())

    def _changing(self, waits: list[_At]) -> Iterator[TextRepair]:
        """With each wait of a thread, or with each lap of a ring: of all copies of one wait."""
        statements = list(dict.fromkeys(self._statement(*each) for each in waits))
        for stages, statement, begin in itertools.product(_STAGES, statements, (0, 1)):
            found = [each for each in waits if self._statement(*each) == statement]
            words = f"with a parity that is {begin}{COUNTED} {'each wait' if stages == 1 else f'every {stages} waits'}"
            count = f"waits_{found[0][1].start}"
            repair = self._altered(found, [_counted_wait(each, stages, count) for _, each in found], words)
            first = next(found[0][0].instructions())
            start = f".reg .b32 {count}; mov.u32 {count}, {begin * stages}; "
            yield TextRepair(repair.steps, ((first.start, first.start, start), *repair.edits))

    def _elsewhere(self) -> Iterator[TextRepair]:
        """A wait for another mbarrier, one of those that the kernel initialises: first the waits of the finding."""
        if self.kind not in _TOO_EARLY:
            return
        inits = [(function, _variable(function, each)) for function, each in self._of_kinds((effects.MbarrierInit,))]
        own = {self._statement(*each) for each in self._own}
        waits = {(each[1].start, self._statement(*each)): each for each in self._waits()}
        statements = sorted(dict.fromkeys(statement for _, statement in waits), key=lambda each: each not in own)
        for statement, (home, name) in itertools.product(statements, dict.fromkeys(inits)):
            found = [each for (_, of), each in waits.items() if of == statement and each[0] is home]
            if name and found and name not in {_variable(*each) for each in found}:
                texts = [each.text.replace(each.operands[1].text, f"[{name}]", 1) for _, each in found]
                yield self._altered(found, texts, f"for {source_name(name)}")

    def _parities(self) -> list[_At]:
        """Those that a thread may execute for several phases: in a loop that is not their own, or in several copies."""
        found = [each for each in self._waits() if each[1].predicate is None and _PARITY.search(each[1].opcode)]
        copies = Counter(self._statement(*each) for each in found)
        return [each for each in found if copies[self._statement(*each)] > 1 or any(not own for own in _loops(*each))]

    def _blocking(self, wait: str) -> str:
        """A wait that may suspend the thread, where the target has one."""
        return wait.replace("test_wait", "try_wait", 1) if self._has_try_wait else wait

    @functools.cached_property
    def _has_try_wait(self) -> bool:
        target = _TARGET.search(self.text.module.text)
        return target is not None and int(target[1]) >= 90

    def _of_tokens(self) -> Iterator[TextRepair]:
        """A wait for the phase of an arrival, behind it."""
        if self.kind not in ("data-race", "uninitialized-read") and self.situation != "phase-lapped":
            return
        arrivals = [
            each for each in self._of_kinds((effects.MbarrierArrive,)) if _OWN_ARRIVAL.match(each[1].opcode) and each[1].predicate is None
        ]
        for statement in dict.fromkeys(self._statement(*each) for each in arrivals):
            found = [each for each in arrivals if self._statement(*each) == statement]
            wait = self._blocking("mbarrier.test_wait")
            step = RepairStep("add", f"{wait} of its token in a loop", "after", self._site(*found[0]))
            yield TextRepair((step,), tuple((each.start, each.end, _waited(each, wait)) for _, each in found))

    def _announced(self) -> Iterator[TextRepair]:
        """Bytes that an arrival expects, and a count that includes it."""
        alone = [each for each in self._of_kinds((effects.MbarrierTransaction,)) if _EXPECT.match(each[1].opcode)]
        inits = self._of_kinds((effects.MbarrierInit,))
        for at in alone if self.kind in _OF_PHASES else ():
            opcode = _EXPECT.sub("mbarrier.arrive.expect_tx", at[1].opcode)
            text = f"{opcode} _, {', '.join(operand.text for operand in at[1].operands)};"
            more: list[Edit] = [(each.start, each.end, _plus_one(each)) for _, each in inits]
            steps = [
                RepairStep("alter", f"{each.opcode} with a count of one more", "at", self._site(function, each)) for function, each in inits
            ]
            yield TextRepair((RepairStep("alter", opcode, "at", self._site(*at)), *steps), ((at[1].start, at[1].end, text), *more))

    def _tracked(self) -> Iterator[TextRepair]:
        """An arrival that comes behind the copies of its thread, in place of one that does not wait for them."""
        if self.kind != "missing-wait" or not self._of_kinds((effects.CopyIssue,)):
            return
        groups: dict[object, list[tuple[_At, str]]] = {}
        for at in self._of_kinds((effects.MbarrierArrive,)):
            if (found := _UNCOUNTED.match(at[1].text)) is not None:
                text = f"{found[1] or ''}{_TRACKING}.shared.b64 {at[1].operands[1].text};"
                groups.setdefault(self._statement(*at), []).append((at, text))
        for group in groups.values():
            edits = tuple((each.start, each.end, text) for (_, each), text in group)
            yield TextRepair((RepairStep("alter", _TRACKING, "at", self._site(*group[0][0])),), edits)

    def _waits(self) -> list[_At]:
        found = self._of_kinds((effects.MbarrierWait,)) if self.kind in _OF_PHASES else []
        return [each for each in found if _WAIT.match(each[1].opcode)]

    def _altered(self, found: list[_At] | tuple[_At, ...], texts: list[str], words: str) -> TextRepair:
        steps = {self._statement(*each): RepairStep("alter", f"{each[1].opcode} {words}", "at", self._site(*each)) for each in found}
        return TextRepair(tuple(steps.values()), tuple((each.start, each.end, text) for (_, each), text in zip(found, texts, strict=True)))


def _variable(function: Function, instruction: Instruction) -> str:
    """The shared variable that an operation on an mbarrier takes as its address; empty if the text does not show it."""
    place = next(each for each in instruction.operands if isinstance(each, Address))
    if isinstance(place.base, Symbol):
        return "" if place.offset else place.base.name
    writers = [each for key in keys_read(instruction) if key[-1] == place.base.text for each in definitions(function).get(key, ())]
    values = {each.operands[-1].name if isinstance(each.operands[-1], Symbol) else "" for each in writers}
    return "" if place.offset or len(values) != 1 else values.pop()


def _is_repeated(function: Function, wait: Instruction) -> bool:
    return any(_loops(function, wait))


def _loops(function: Function, wait: Instruction) -> Iterator[bool]:
    """For each branch backwards over a wait: whether the result of the wait decides about it."""
    known = set(written(wait))
    for each in function.instructions():
        if each.start > wait.start and known & set(keys_read(each)):
            known |= set(written(each))
    for each in loops_around(function, wait):
        yield each.predicate is not None and key_of(each.scope, each.predicate.register) in known


def _is_constant(function: Function, wait: Instruction) -> bool:
    """Whether each wait here is for the same parity: a number, or a register that only has one."""
    parity = wait.operands[2]
    keys = [] if isinstance(parity, Immediate) else [key for key in keys_read(wait) if key[-1] == parity.text]
    writers = [each for key in keys for each in definitions(function).get(key, ())]
    return isinstance(parity, Immediate) or (bool(writers) and all(isinstance(each.operands[-1], Immediate) for each in writers))


def _counted_wait(wait: Instruction, stages: int, count: str) -> str:
    """A wait whose parity follows from how often a thread has waited here, as a register has it."""
    done, place, _, *others = (operand.text for operand in wait.operands)
    operands = ", ".join((done, place, "parity", *others))
    return (
        f"{{ .reg .b32 parity; div.u32 parity, {count}, {stages}; and.b32 parity, parity, 1; {wait.opcode} {operands};"
        f" @{done} add.u32 {count}, {count}, 1; }}"
    )


def _waited(arrival: Instruction, wait: str) -> str:
    token, place, *others = (operand.text for operand in arrival.operands)
    own = "token" if token == "_" else token
    operands = ", ".join((own, place, *others))
    return (
        f"{{ .reg .b64 token; .reg .pred done; {arrival.opcode} {operands};"
        f" again: {wait}.shared.b64 done, {place}, {own}; @!done bra again; }}"
    )


def _plus_one(init: Instruction) -> str:
    place, count = (operand.text for operand in init.operands)
    return f"{{ .reg .b32 more; add.u32 more, {count}, 1; {init.opcode} {place}, more; }}"
