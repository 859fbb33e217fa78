"""Slices over registers: what some registers follow from, and what follows from them. They know no order of instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from consan.instrument.control_flow.registers import Key, key_of, written
from consan.instrument.isa import Row
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Instruction

_DATA: Final = frozenset({"dst", "acc", "src", "policy", "time-hint"})  # roles of operands that decide neither what is done nor where
_SPACES: Final = {"generic": ("shared", "global", "local")}


def backward_slice(
    made: Mapping[Key, Sequence[Instruction]], keys: Iterable[Key], needs: Callable[[Instruction], Iterable[Key]]
) -> list[Instruction]:
    """The instructions that some registers follow from. `made`: the writers of each register; `needs`: what a writer follows from."""
    pending, seen, found = list(keys), set[Key](), list[Instruction]()
    while pending:
        key = pending.pop()
        if key not in seen:
            seen.add(key)
            for each in made.get(key, ()):
                found.append(each)
                pending += needs(each)
    return found


def forward_slice(instructions: Sequence[Instruction], keys: Iterable[Key], carries: Callable[[Instruction, set[Key]], bool]) -> set[Key]:
    """Some registers, and those that follow from them. `carries`: whether an instruction's results do, given the registers found so far."""
    found, before = set(keys), -1
    while before < len(found):
        before = len(found)
        for each in instructions:
            if carries(each, found):
                found.update(written(each))
    return found


def deciding_keys(instruction: Instruction, row: Row) -> Iterator[Key]:
    """The registers of the operands that decide what an access to memory does, or where."""
    for role, operand in zip(row.roles(instruction), instruction.operands, strict=True):
        if role not in _DATA:
            yield from operand_keys(instruction, operand)


def operand_keys(instruction: Instruction, operand: object) -> Iterator[Key]:
    """The registers of an operand."""
    return (key_of(instruction.scope, name) for name in names((operand,)))


def touched_spaces(row: Row | None, instruction: Instruction, access: str) -> set[str]:
    """The state spaces that an instruction reads, or writes (`access`). A generic address may be in each of three."""
    touched = row.accesses(instruction) if row is not None else ()
    found = (each.space for each in touched if each.access in (access, "rmw"))
    return {space for each in found for space in _SPACES.get(each, (each,))}
