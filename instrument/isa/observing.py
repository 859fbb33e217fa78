"""Observations of other threads by an instruction: what it gives, or does, in another schedule.

Only instructions that are known to do the same in each schedule are independent of it; all others are not (`is_steady`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from consan.instrument.isa.model import InstructionLike, Row
from consan.instrument.isa.table import lookup

__all__ = [
    "commutes", "gives_a_value", "gives_who_is_there", "is_of_system", "is_steady", "observes_strongly", "operation_of", "orders_others",
    "update_of", "writes_strongly",
]  # fmt: skip

_OF_THREAD: Final = frozenset({"arithmetic", "address", "cluster-address", "load", "texture", "store", "mma", "control", "cache", "debug"})
_STEADY: Final = _OF_THREAD | {
    *("warp-collective", "barrier", "warp-barrier", "cluster-barrier", "fence", "proxy-fence", "ldmatrix", "stmatrix", "wmma", "wgmma"),
    *("cp.async", "cp.async.commit", "cp.async.wait", "bulk", "tensor", "atomic", "reduction", "surface", "call", "special"),
}
_COMMUTES: Final = frozenset({"add", "min", "max", "and", "or", "xor"})
_UPDATES: Final = _COMMUTES | {"exch", "cas", "inc", "dec"}
_SAME_IN_ALL: Final = (
    *("%tid", "%ntid", "%ctaid", "%nctaid", "%laneid", "%lanemask", "%cluster", "%ncluster", "%is_explicit", "%envreg"),
    *("%dynamic_smem", "%total_smem", "%aggr_smem", "%reserved_smem", "%nwarpid", "%nsmid"),
)
_EXTERNAL: Final = frozenset({"vprintf", "__assertfail"})  # functions of the system that give nothing of others


def is_steady(instruction: InstructionLike, row: Row | None, functions: Collection[str], *, of_all: bool) -> bool:
    """Whether an instruction does the same in each schedule, but for the value that it gives. `functions`: those that have a body.
    `of_all`: whether a barrier is one of all threads of the CTA.
    """
    if row is None or row.family not in _STEADY or row.is_of_grids or row.takes_cluster or row.arrives_behind_copies:
        return False
    if row.is_cta_barrier:
        return of_all and not row.arrives_only
    if row.calls:
        return any(getattr(each, "name", "") in (*functions, *_EXTERNAL) for each in instruction.operands)
    return row.completion != "mbarrier" and not any("mbarrier" in word for word in instruction.parts)


def orders_others(instruction: InstructionLike, row: Row | None) -> bool:
    """Whether an instruction may make a strong access one that orders others."""
    if row is None or row.is_fence:
        return True
    return row.is_ordinary and bool(row.touches) and bool(row.event(instruction).orders)


def observes_strongly(instruction: InstructionLike, row: Row) -> bool:
    """Whether an instruction reads what others may write meanwhile, without a race: a strong load, or an atomic with a result."""
    return row.is_atomic or (row.is_load and bool(row.touches) and row.describe(instruction).is_strong)


def writes_strongly(instruction: InstructionLike, row: Row) -> bool:
    """Whether an instruction writes where others may write meanwhile, without a race: the last one stays."""
    return row.is_store and bool(row.touches) and row.describe(instruction).is_strong


def gives_a_value(instruction: InstructionLike) -> bool:
    """Whether a thread sees what it has observed: the result of a wait, of a load or of an atomic."""
    row = lookup(instruction.parts)
    return row is not None and (row.is_phase_wait or observes_strongly(instruction, row))


def update_of(instruction: InstructionLike, row: Row) -> tuple[str, str]:
    """The operation of an atomic, if it is one that commutes, and its type."""
    words = row.modifiers(instruction.parts)
    return next((each for each in words.values() if each in _COMMUTES), ""), words.get("type", "")


def operation_of(instruction: InstructionLike, row: Row) -> str:
    """The operation of an atomic or a reduction, such as "add" or "exch"; empty: it is none of integers."""
    return next((each for each in row.modifiers(instruction.parts).values() if each in _UPDATES), "")


def commutes(instruction: InstructionLike, row: Row) -> bool:
    """Whether memory holds the same after such updates in any order: they are of integers."""
    operation, kind = update_of(instruction, row)
    return bool(operation) and kind[:1] in ("u", "s", "b") and not kind.startswith("bf")


def gives_who_is_there(instruction: InstructionLike) -> bool:
    """Whether an instruction gives who is active; or sums in memory in any order, asynchronously."""
    row = lookup(instruction.parts)
    if row is None or row.asks_who_is_active or (row.exchanges and "sync" not in instruction.parts):
        return True
    return row.is_bulk and row.writes and not _COMMUTES.isdisjoint(instruction.parts)


def is_of_system(name: str) -> bool:
    """Whether a special register has a time, or a place that the system chooses."""
    return not name.startswith(_SAME_IN_ALL)
