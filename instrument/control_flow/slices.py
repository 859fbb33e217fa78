"""Slices over registers: what some registers follow from, and what follows from them. They know no order of instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from consan.instrument.control_flow.registers import Key, written
from consan.instrument.ptx import Instruction


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
