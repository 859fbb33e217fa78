"""Which strong accesses have a place that follows from an index in a table: no thread has such a word as its own flag (R-MO2).

A search in a graph stores to the vertices that the edges name. Only the graph decides that one
thread alone stores to a vertex. The index has at most four bytes and lies in global memory, at a place that differs between threads or
rounds. So pointers that are loaded do not count, nor does the number of a rank, which all threads load from one place.

Not followed: calls, and indices that pass shared or local memory.
"""

from __future__ import annotations

import functools

from consan.instrument.control_flow import Key, definitions, keys_read, written
from consan.instrument.control_flow.slices import backward_slice, operand_keys
from consan.instrument.isa import MemoryAccess, lookup
from consan.instrument.ptx import Function, Instruction, Register

_WIDEST = 4  # bytes of an index
_GLOBAL = ("global", "generic")


@functools.lru_cache(maxsize=256)
def looked_up(function: Function) -> frozenset[int]:
    """The starts of these accesses."""
    made = definitions(function)
    return frozenset(each.start for each in function.instructions() if _is_strong(each) and _is_looked_up(each, made))


def _is_looked_up(instruction: Instruction, made: dict[Key, list[Instruction]]) -> bool:
    around = backward_slice(made, _address(instruction), lambda each: () if _is_load(each) else keys_read(each))
    return any(_is_index(each) and _varies(each, made) for each in around)


def _is_index(instruction: Instruction) -> bool:
    access = _access(instruction)
    return _is_load(instruction) and access is not None and access.space in _GLOBAL and access.total_bytes <= _WIDEST


def _varies(load: Instruction, made: dict[Key, list[Instruction]]) -> bool:
    """Whether the place of a load follows from the thread, from a round, or from something else that is loaded."""
    around = backward_slice(made, _address(load), lambda each: () if _is_load(each) else keys_read(each))
    return any(is_loaded(each) or _has_special(each) or len(made[key]) > 1 for each in around for key in written(each))


def is_loaded(instruction: Instruction) -> bool:
    """Parameters are the same in all threads."""
    access = _access(instruction)
    return _is_load(instruction) and (access is None or access.space != "param")


def _has_special(instruction: Instruction) -> bool:
    registers = (each for each in instruction.operands[1:] if isinstance(each, Register))
    return any(not instruction.scope.is_register(each.name) for each in registers)


def _address(instruction: Instruction) -> tuple[Key, ...]:
    access = _access(instruction)
    return tuple(operand_keys(instruction, access.address)) if access is not None and access.address is not None else ()


def _is_load(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    return row is not None and row.is_load and bool(row.touches)


def _is_strong(instruction: Instruction) -> bool:
    access = _access(instruction)
    return access is not None and access.is_strong


def _access(instruction: Instruction) -> MemoryAccess | None:
    row = lookup(instruction.parts)
    return row.event(instruction).first if row is not None and row.touches else None
