"""Waits at mbarriers whose result no instruction uses (R-M14), found in the text.

ISA "mbarrier.test_wait, mbarrier.try_wait": both may return false, try_wait at its time limit, so one whose result decides nothing has not
waited: it orders nothing, whatever it returns in a run. A result is used if anything but arithmetic reads it, or reads a value computed
from it: a guard, a branch, a store, a call. The position of the use does not matter, so a result that is used on some path only counts as
used.

Not handled: results that are used without effect (a branch whose two sides are the same), and a single attempt without a loop, which is
a legal way to look ahead. test_wait is not reported by itself, because it is a test and not a wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from consan.instrument.control_flow import Key, key_of, written
from consan.instrument.isa import row_of
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Function, Instruction


def ignored_waits(function: Function) -> list[Instruction]:
    """The waits and tests of a function whose results are ignored, in text order."""
    if function.body is None:
        return []
    instructions = list(function.instructions())
    waits = [each for each in instructions if row_of(each).is_phase_wait]
    if not waits:
        return []
    readers: dict[Key, list[Instruction]] = {}
    for instruction in instructions:
        for key in _read(instruction):
            readers.setdefault(key, []).append(instruction)
    return [wait for wait in waits if not _looked_at(wait, readers)]


def _looked_at(wait: Instruction, readers: dict[Key, list[Instruction]]) -> bool:
    """Whether the result reaches anything but arithmetic."""
    pending = list(written(wait))
    seen = set(pending)
    while pending:
        key = pending.pop()
        for reader in readers.get(key, ()):
            if not row_of(reader).is_arithmetic or _is_guard(reader, key):
                return True
            fresh = set(written(reader)) - seen
            seen |= fresh
            pending += fresh
    return False


def _is_guard(instruction: Instruction, key: Key) -> bool:
    predicate = instruction.predicate
    return predicate is not None and key_of(instruction.scope, predicate.register) == key


def _read(instruction: Instruction) -> Iterator[Key]:
    """The registers that an instruction reads. Other names are harmless here."""
    targets = list(written(instruction))
    for operand in instruction.operands:
        for name in names(operand):
            key = key_of(instruction.scope, name)
            if key in targets:
                targets.remove(key)
            else:
                yield key
    if instruction.predicate is not None:
        yield key_of(instruction.scope, instruction.predicate.register)
