"""Loads of what no thread of the launch writes: through pointers among the parameters, where no write follows from the same pointer.

Arrays of different pointers do not overlap, as a proof assumes. So all threads that load from one such address load one value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from consan.instrument.control_flow import Key, definitions, key_of
from consan.instrument.control_flow.slices import backward_slice
from consan.instrument.isa import MemoryAccess, row_of
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Function, Instruction
from consan.prove.environment import Environment
from consan.prove.kernel import sources
from consan.prove.numbers import Base


def read_only_loads(function: Function, environment: Environment) -> frozenset[int]:
    """The loads of what nobody writes, by their starts in the text."""
    made = definitions(function)
    found, written_bases = dict[int, set[Base]](), set[Base]()
    for instruction, touch in _global_accesses(function):
        bases = set(_bases(instruction, touch, made, environment))
        if touch.writes and not bases:
            return frozenset()
        written_bases |= bases if touch.writes else set()
        if row_of(instruction).is_load:
            found[instruction.start] = bases
    return frozenset(start for start, bases in found.items() if bases and not bases & written_bases)


def _global_accesses(function: Function) -> Iterator[tuple[Instruction, MemoryAccess]]:
    for instruction in function.instructions():
        for touch in row_of(instruction).accesses(instruction):
            if touch.is_visible and not touch.in_shared:
                yield instruction, touch


def _bases(
    instruction: Instruction, touch: MemoryAccess, made: Mapping[Key, Sequence[Instruction]], environment: Environment
) -> Iterator[Base]:
    """The pointers that the address of an access may follow from."""
    keys = [key_of(instruction.scope, name) for name in names(touch.address) if instruction.scope.is_register(name)]
    for each in backward_slice(made, keys, sources):
        for word in environment.words(each).values():
            found = environment.base_of(*word)
            if found is not None:
                yield found
