"""The table itself: every row, exact look-up of an opcode, and the registers that an instruction reads and writes.

Covers chapter 9 of the PTX ISA 9.1 manual. The table does not guess: for an opcode without a row `lookup` returns None, and
`is_memory_or_sync` tells whether such an opcode could access memory or synchronise. A report that depends on it must then be
incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from consan.instrument.isa.model import InstructionLike, Row
from consan.instrument.isa.roles import names
from consan.instrument.isa.rows import (
    arithmetic,
    bulk,
    control,
    conversion,
    logic,
    matrix,
    mbarriers,
    memory,
    synchronisation,
    tensor_memory,
    video,
)

__all__ = ["ROWS", "alternatives", "canonical", "destinations", "is_memory_or_sync", "lookup", "sources"]

_MODULES = (arithmetic, logic, conversion, video, control, memory, synchronisation, mbarriers, bulk, matrix, tensor_memory)
ROWS: tuple[Row, ...] = tuple(row for module in _MODULES for row in module.ROWS)


def _by_first_word() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in ROWS:
        found.setdefault(row.name.partition(".")[0], []).append(row)
    return found


_INDEX = _by_first_word()
_CACHE: dict[tuple[str, ...], Row | None] = {}


def lookup(parts: tuple[str, ...]) -> Row | None:
    """The row whose form matches the whole opcode, in the manual's order of modifiers or in another order that ptxas accepts."""
    try:
        return _CACHE[parts]
    except KeyError:
        return _CACHE.setdefault(parts, _find(parts))


def _find(parts: tuple[str, ...]) -> Row | None:
    candidates = _INDEX.get(parts[0], ())
    for free in (False, True):
        for row in candidates:
            if row.match(parts, free=free) is not None:
                return row
    return None


def canonical(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The opcode with its modifiers in the manual's order; unchanged without a row."""
    row = lookup(parts)
    return parts if row is None else row.canonical(parts)


def alternatives(parts: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The modifier for which an opcode has no row, and those with which it would have one; empty where that is not one modifier."""
    if lookup(parts) is not None:
        return "", ()
    for at in range(len(parts) - 1, 0, -1):
        fitting = tuple(dict.fromkeys(_fitting(parts, at)))
        if fitting:
            return parts[at], fitting
    return "", ()


def _fitting(parts: tuple[str, ...], at: int) -> Iterator[str]:
    for row in _INDEX.get(parts[0], ()):
        words = {word for slots in row.slots for slot in slots for word in slot.words}
        for word in sorted(words, key=lambda word: (len(word), word)):
            if row.match((*parts[:at], word, *parts[at + 1 :])) is not None:
                yield word


# First words of opcodes that only compute, branch or exchange within a warp. Any other opcode without a row counts as memory access or
# synchronisation, because a sanitizer must not overlook new instructions of that kind.
_WITHOUT_MEMORY = frozenset({"arithmetic", "control", "call", "warp-collective", "mma", "address", "texture", "surface"})
_HARMLESS = frozenset(
    name for name, rows in _INDEX.items() if all(row.status == "neutral" and row.family in _WITHOUT_MEMORY for row in rows)
)


def is_memory_or_sync(parts: tuple[str, ...]) -> bool:
    """Whether an opcode accesses memory or synchronises; conservative (True) for an unknown opcode."""
    row = lookup(parts)
    if row is not None:
        return row.status != "neutral" or bool(row.touches)
    return parts[0] not in _HARMLESS


# Operands that are labels, functions, or tables of them.
_NOT_REGISTERS = frozenset({"label", "targets"})


def destinations(instruction: InstructionLike) -> tuple[str, ...]:
    """Names of the registers that the instruction writes, in order. A guard predicate may prevent the write."""
    return tuple(name for role, operand in _operands(instruction) if role in ("dst", "acc") for name in names(operand))


def sources(instruction: InstructionLike) -> tuple[str, ...]:
    """Names of the registers (and symbols) that the instruction reads: operands, addresses and the guard predicate."""
    read = [name for role, operand in _operands(instruction) if role != "dst" and role not in _NOT_REGISTERS for name in names(operand)]
    predicate = getattr(instruction, "predicate", None)
    return tuple(read) if predicate is None else (predicate.register, *read)


def _operands(instruction: InstructionLike) -> Iterator[tuple[str, Any]]:
    row = lookup(instruction.parts)
    if row is None:
        raise LookupError(f"no row for the opcode {'.'.join(instruction.parts)}")
    return zip(row.roles(instruction), instruction.operands, strict=True)
