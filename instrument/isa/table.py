"""The table itself: every row, exact look-up of an opcode, and the registers that an instruction reads and writes.

Covers chapter 9 of the PTX ISA 9.1 manual. An opcode without a row is not guessed at: `lookup` gives None, and
`is_memory_or_sync` tells whether such an opcode could touch memory or synchronise, in which case a report that depends on it
must be incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from consan.instrument.isa import arithmetic, bulk, control, matrix, memory, synchronisation
from consan.instrument.isa.model import InstructionLike, Row
from consan.instrument.isa.roles import names

__all__ = ["ROWS", "canonical", "destinations", "is_memory_or_sync", "lookup", "sources"]

ROWS: tuple[Row, ...] = tuple(row for module in (arithmetic, control, memory, synchronisation, bulk, matrix) for row in module.ROWS)


def _by_first_word() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in ROWS:
        found.setdefault(row.name.partition(".")[0], []).append(row)
    return found


_INDEX = _by_first_word()
_CACHE: dict[tuple[str, ...], Row | None] = {}


def lookup(parts: tuple[str, ...]) -> Row | None:
    """The row whose form the whole opcode has, in the manual's order of modifiers or else in one that ptxas allows."""
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
    """The opcode with its modifiers in the manual's order; unchanged where it has no row."""
    row = lookup(parts)
    return parts if row is None else row.canonical(parts)


# Words that can only begin an opcode which computes, branches or exchanges within a warp. Anything else without a row counts as
# memory or synchronisation: new instructions of those kinds are what a sanitizer must not overlook.
_HARMLESS = frozenset(
    name
    for name, rows in _INDEX.items()
    if all(row.family in ("arithmetic", "control", "call", "warp-collective", "mma", "address", "texture", "surface") for row in rows)
)


def is_memory_or_sync(parts: tuple[str, ...]) -> bool:
    """Whether an opcode touches memory or synchronises; conservative (True) for one that the table does not know."""
    row = lookup(parts)
    if row is not None:
        return row.status != "neutral" or bool(row.touches)
    return parts[0] not in _HARMLESS


# Operands that are labels, functions, or tables of them.
_NOT_REGISTERS = frozenset({"label", "targets"})


def destinations(instruction: InstructionLike) -> tuple[str, ...]:
    """Names of the registers that the instruction writes, in order; a guard predicate may keep them as they were."""
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
