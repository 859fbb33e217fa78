"""Which instructions of a kernel matter between two accesses: those that access memory or synchronise, and calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final

from consan.instrument.functions.analyse import callee
from consan.instrument.isa import MemoryAccess, Row, lookup, row_of
from consan.instrument.ptx import Function, Immediate, Instruction, Module


def matters(instruction: Instruction) -> bool:
    """Whether an instruction may be an access, of shared, global or tensor memory, or synchronises."""
    row = row_of(instruction)
    return bool(row.touches) or row.calls or row.is_asynchronous or row.is_of_tensor_memory or is_sync(row)


def touched_by(instruction: Instruction, kinds: tuple[str, ...]) -> Iterator[MemoryAccess]:
    """The accesses of an instruction to memory that may be shared."""
    row = lookup(instruction.parts)
    for access in row.accesses(instruction) if row is not None and row.touches else ():
        if access.access in kinds and access.may_be_shared:
            yield access


def is_full(instruction: Instruction) -> bool:
    """A barrier for all threads of the CTA: `bar.sync` without a thread count."""
    row = row_of(instruction)
    return row.is_cta_barrier and not row.arrives_only and "count" not in row.roles(instruction)


def _is_warp(instruction: Instruction) -> bool:
    operands = instruction.operands
    if not row_of(instruction).is_warp_barrier:
        return is_full(instruction)
    return isinstance(operands[0], Immediate) and int(operands[0].value) & 0xFFFFFFFF == 0xFFFFFFFF


def _is_cluster(instruction: Instruction) -> bool:
    row = row_of(instruction)
    return row.is_cluster_barrier and not row.arrives_only


def _is_of_lanes(instruction: Instruction) -> bool:
    return row_of(instruction).is_warp_barrier or is_full(instruction)


BARRIERS: Final[dict[str, Callable[[Instruction], bool]]] = {
    "warp": _is_warp, "lanes": _is_of_lanes, "cta": is_full, "cluster": _is_cluster,
}  # fmt: skip


class SynchronisingCalls:
    """The calls that can reach a function that synchronises."""

    def __init__(self, module: Module) -> None:
        self._bodies = {f.name: f for f in module.functions if f.body is not None}

    def synchronises(self, call: Instruction) -> bool:
        """Whether a call may synchronise; an indirect call may."""
        target = callee(call)
        return target is None or target in self._names

    def reaches(self, call: Instruction, function: str) -> bool:
        """Whether a call of a named function may reach a function."""
        return callee(call) in self._callers({function})

    @cached_property
    def _names(self) -> set[str]:
        return self._callers({name for name, f in self._bodies.items() if any(_syncs(i) for i in f.instructions())})

    def _callers(self, found: set[str]) -> set[str]:
        """Functions, and those that call them."""
        while True:
            more = {name for name, f in self._bodies.items() if name not in found and any(t in found for t in _callees(f))}
            if not more:
                return found
            found |= more


def _syncs(instruction: Instruction) -> bool:
    return is_sync(row_of(instruction))


def is_sync(row: Row) -> bool:
    """Whether an instruction of a row synchronises."""
    return row.synchronises or row.exchanges or row.is_of_groups or row.fences_products


def _callees(function: Function) -> Iterator[str | None]:
    return (callee(instruction) for instruction in function.instructions() if row_of(instruction).calls)
