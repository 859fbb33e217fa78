"""PhaseCounters of a thread: registers that no instruction names, which count what the thread has done with each array of mbarriers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.control_flow import Key
from consan.instrument.effects import (
    BulkCommit,
    BulkLoad,
    BulkStore,
    BulkWait,
    CopyCommit,
    CopyWait,
    Effect,
    MbarrierArrive,
    MbarrierWait,
    ProductCommit,
    ProductWait,
    TensorLoad,
)
from consan.instrument.effects.makes import Makes
from consan.instrument.isa import row_of
from consan.instrument.ptx import Function, Immediate, Instruction, Operand

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
    return PhaseAction.COPY if is_followed(instruction) else PhaseAction.OTHER


def is_followed(instruction: Instruction) -> bool:
    """Whether an instruction is a copy to shared memory that completes on an mbarrier: of a box, or of bytes that its text says."""
    row = row_of(instruction)
    plain = row.is_bulk and row.does(BulkLoad) and len(row.roles(instruction)) == len(("to", "from", "size", "mbarrier"))
    return plain or is_tensor_load(instruction)


def is_tensor_load(instruction: Instruction) -> bool:
    """Whether an instruction is a tensor copy to shared memory of a box that its tensor map says."""
    row = row_of(instruction)
    return row.is_bulk and row.does(TensorLoad) and row.roles(instruction) == ("dst-addr", "tensor", "mbar")


def is_bulk_store(instruction: Instruction) -> bool:
    """Whether an instruction is a bulk copy from shared to global memory of bytes that its text says."""
    row = row_of(instruction)
    return row.is_bulk and row.does(BulkStore) and not row.names_many and len(row.roles(instruction)) == len(("to", "from", "size"))


def measure_of(instruction: Instruction) -> Operand | None:
    """The operand with a parity, a number of arrivals, or a number of bytes."""
    operands = dict(zip(row_of(instruction).roles(instruction), instruction.operands, strict=True))
    return next((operands[role] for role in _MEASURES if role in operands), None)


GROUPS: Final[Mapping[type[Effect], type[Effect]]] = {CopyWait: CopyCommit, BulkWait: BulkCommit, ProductWait: ProductCommit}
"""The waits that end groups of asynchronous operations."""


def committed_by(instruction: Instruction) -> type[Effect] | None:
    """The kind of wait that ends the group of an asynchronous operation; None: an mbarrier completes it, or the instruction is none."""
    row = row_of(instruction)
    return CopyCommit if row.is_copy else BulkCommit if is_bulk_store(instruction) else ProductCommit if row.is_product else None


def groups_left(instruction: Instruction, wait: Makes) -> int | None:
    """How many groups a wait may leave in flight; -1: it is for all operations before it; None: that is not known."""
    if "pending" not in wait.operands:
        return -1
    (count,) = instruction.operands
    return int(count.value) if isinstance(count, Immediate) else None


def committed(commit: type[Effect]) -> Key:
    """The counter of the groups of one kind."""
    return -1, f"%groups.{commit.__name__}"


def completed(commit: type[Effect]) -> Key:
    """The counter of those that a thread has waited for."""
    return -1, f"%completed.{commit.__name__}"


@dataclass(frozen=True)
class GroupWaitCounters:
    """A wait for groups: it leaves so many of them."""

    commit: type[Effect]
    left: int


@dataclass(frozen=True)
class PhaseCounters:
    """`added`: what an instruction adds to which counter, by its start in the text. `waits`: the counter of a wait that ends.

    `groups`: waits for groups.
    """

    keys: frozenset[Key] = frozenset()
    added: Mapping[int, tuple[Key, int]] = field(default_factory=dict)
    waits: Mapping[int, Key] = field(default_factory=dict)
    groups: Mapping[int, GroupWaitCounters] = field(default_factory=dict)

    def of(self, instruction: Instruction) -> set[Key]:
        """The counters that an instruction may change."""
        found = {self.waits[instruction.start]} if instruction.start in self.waits else set[Key]()
        found |= {completed(self.groups[instruction.start].commit)} if instruction.start in self.groups else set()
        return found | ({self.added[instruction.start][0]} if instruction.start in self.added else set())

    def with_groups(self, function: Function) -> PhaseCounters:
        """The same, with counters of groups of asynchronous operations."""
        added, groups = dict(self.added), dict[int, GroupWaitCounters]()
        for instruction in function.instructions():
            for made in row_of(instruction).makes:
                commit = GROUPS.get(made.kind, made.kind)
                if commit not in GROUPS.values():
                    continue
                left = -1 if made.kind is commit else groups_left(instruction, made)
                if left == -1:  # `wait_all` ends a group, too
                    added[instruction.start] = committed(commit), 1
                if made.kind is not commit and left is not None:
                    groups[instruction.start] = GroupWaitCounters(commit, max(0, left))
        keys = {key for commit in GROUPS.values() for key in (committed(commit), completed(commit))} if groups else set[Key]()
        return replace(self, keys=self.keys | keys, added=added if groups else self.added, groups=groups)
