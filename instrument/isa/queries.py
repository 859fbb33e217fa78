"""Questions about one instruction that need no more than its row: its family, where control goes, whether it may wait for others."""

from __future__ import annotations

from consan.instrument.isa.model import InstructionLike
from consan.instrument.isa.table import lookup

__all__ = ["family_of", "flow_of", "has_action", "may_wait", "polls"]


def family_of(instruction: InstructionLike) -> str:
    """The family of an instruction; empty without a row."""
    row = lookup(instruction.parts)
    return row.family if row is not None else ""


def flow_of(instruction: InstructionLike) -> str:
    """Where control goes at an instruction (`Row.flow`); empty for the next instruction."""
    row = lookup(instruction.parts)
    return row.flow if row is not None else ""


def has_action(instruction: InstructionLike, family: str, *actions: str) -> bool:
    """Whether an instruction is of a family, with one of some actions."""
    row = lookup(instruction.parts)
    return row is not None and row.family == family and row.action in actions


def polls(instruction: InstructionLike) -> bool:
    """Whether a loop around the instruction may wait for another thread. Instructions that block by themselves do not count."""
    row = lookup(instruction.parts)
    if row is None:
        return False
    if row.family == "load":
        return row.semantics(row.modifiers(instruction.parts))[0] != "weak"
    return row.family == "atomic" or row.action in ("sleep", "test_wait")


def may_wait(instruction: InstructionLike) -> bool:
    """As `polls`, and `mbarrier.try_wait`, which blocks up to its time limit."""
    return polls(instruction) or has_action(instruction, "mbarrier", "try_wait")
