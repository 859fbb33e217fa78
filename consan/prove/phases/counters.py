"""PhaseCounters of a thread: registers that no instruction names, which count what the thread has done with each array of mbarriers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from consan.dataclass import dataclass
from consan.instrument.control_flow import Key
from consan.instrument.effects import BulkLoad, BulkStore, MbarrierArrive, MbarrierWait
from consan.instrument.isa import row_of
from consan.instrument.ptx import Instruction, Operand

_MEASURES = ("parity", "tx-count", "count", "size")


class PhaseAction(Enum):
    """The operations on an mbarrier. `OTHER`: phases are not followed through it."""

    INIT = "init"
    WAIT = "wait"
    ARRIVE = "arrive"
    COPY = "copy"
    OTHER = "other"


def action_of(instruction: Instruction) -> PhaseAction:
    """The operation of an instruction on an mbarrier. A form with a flag (without order, of a part of a phase, to CTAs) is another one."""
    row = row_of(instruction)
    if row.begins_mbarrier:
        return PhaseAction.INIT
    made = row.makes[0] if row.makes else None
    if made is None or any(words <= set(instruction.parts) for words in made.words.values()):
        return PhaseAction.OTHER
    roles = row.roles(instruction)
    if made.kind is MbarrierWait and "parity" in roles:
        return PhaseAction.WAIT
    if made.kind is MbarrierArrive and "count" not in roles:
        return PhaseAction.ARRIVE
    return PhaseAction.COPY if made.kind is BulkLoad and is_followed(instruction) else PhaseAction.OTHER


def is_followed(instruction: Instruction) -> bool:
    """Whether an instruction is a bulk copy to shared memory that completes on an mbarrier, and whose bytes its text says."""
    row = row_of(instruction)
    return row.is_bulk and row.does(BulkLoad) and len(row.roles(instruction)) == len(("to", "from", "size", "mbarrier"))


def is_bulk_store(instruction: Instruction) -> bool:
    """Whether an instruction is a bulk copy from shared to global memory of bytes that its text says."""
    row = row_of(instruction)
    return row.is_bulk and row.does(BulkStore) and not row.names_many and len(row.roles(instruction)) == len(("to", "from", "size"))


def measure_of(instruction: Instruction) -> Operand | None:
    """The operand with a parity, a number of arrivals, or a number of bytes."""
    operands = dict(zip(row_of(instruction).roles(instruction), instruction.operands, strict=True))
    return next((operands[role] for role in _MEASURES if role in operands), None)


@dataclass(frozen=True)
class PhaseCounters:
    """`added`: what an instruction adds to which counter, by its start in the text. `waits`: the counter of a wait that ends."""

    keys: frozenset[Key] = frozenset()
    added: Mapping[int, tuple[Key, int]] = field(default_factory=dict)
    waits: Mapping[int, Key] = field(default_factory=dict)

    def of(self, instruction: Instruction) -> set[Key]:
        """The counters that an instruction may change."""
        found = {self.waits[instruction.start]} if instruction.start in self.waits else set[Key]()
        return found | ({self.added[instruction.start][0]} if instruction.start in self.added else set())
