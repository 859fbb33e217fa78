"""The registers that instructions read and write, named so that equal names in two scopes of inline assembly are two registers."""

from __future__ import annotations

from collections.abc import Collection

from consan.dataclass import dataclass
from consan.instrument.isa import destinations, sources
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Block, Function, Instruction

Key = tuple[int, str]
"""A register: the start of the block that declares it, and its name."""


@dataclass(frozen=True)
class Guard:
    """The guard of an instruction: it executes if the register has the value."""

    register: Key
    value: bool


def key_of(scope: Block, name: str) -> Key:
    """The register that a name denotes in a scope. Parameters in registers belong to the whole function."""
    found = scope.lookup(name)
    return (found[1].start if found else -1, name)


def guard_of(instruction: Instruction) -> Guard | None:
    """The guard of an instruction; None without one."""
    predicate = instruction.predicate
    return Guard(key_of(instruction.scope, predicate.register), not predicate.negated) if predicate else None


def written(instruction: Instruction) -> tuple[Key, ...]:
    """The registers that an instruction writes. Without a row in the opcode table: the first operand."""
    return instruction.once(_written)


def _written(instruction: Instruction) -> tuple[Key, ...]:
    try:
        found: Collection[str] = destinations(instruction)
    except (LookupError, ValueError):
        found = tuple(names(instruction.operands[:1]))
    return tuple(key_of(instruction.scope, name) for name in found)


def read(instruction: Instruction) -> tuple[str, ...]:
    """The names of the registers that an instruction reads; none without a row in the opcode table."""
    return instruction.once(_read)


def keys_read(instruction: Instruction) -> tuple[Key, ...]:
    """The registers that an instruction reads; none without a row in the opcode table."""
    return tuple(key_of(instruction.scope, name) for name in read(instruction))


def _read(instruction: Instruction) -> tuple[str, ...]:
    try:
        return tuple(sources(instruction))
    except (LookupError, ValueError):
        return ()


def definitions(function: Function) -> dict[Key, list[Instruction]]:
    """The instructions that write each register of a function."""
    return function.once(_definitions)


def is_unread(function: Function, instruction: Instruction) -> bool:
    """Whether no instruction of a function reads what one of them writes: nothing sees what an atomic has found."""
    return function.once(_all_read).isdisjoint(written(instruction))


def _all_read(function: Function) -> frozenset[Key]:
    guards = (guard_of(each) for each in function.instructions())
    return frozenset(key for each in function.instructions() for key in keys_read(each)) | {each.register for each in guards if each}


def _definitions(function: Function) -> dict[Key, list[Instruction]]:
    found: dict[Key, list[Instruction]] = {}
    for instruction in function.instructions():
        for key in written(instruction):
            found.setdefault(key, []).append(instruction)
    return found
