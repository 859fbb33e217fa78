"""What the recording pass takes. Any other module calls hooks instead, and the report names the engine.

Taken: loads, stores, atomics, `ldmatrix` and `stmatrix` of shared memory, `cp.async` and its groups, mbarriers, bulk copies and tensor
copies in tile mode, proxy fences, `wgmma`, barriers of a CTA and of a warp, and warp-synchronous instructions. Not taken: clusters and
copies to other CTAs (bulk.py), changes of tensor maps, accesses in device functions, synchronisation through memory (a strong store and
a strong load with an order), because the order of such accesses is not in the log, and loops that poll memory: each round would be
written down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from consan.instrument.isa import MemoryAccess, destinations, family_of, flow_of, lookup, polls
from consan.instrument.passes.context import FunctionPlan, Work
from consan.instrument.passes.flow import Graph, graph_of
from consan.instrument.ptx import Instruction, Module
from consan.instrument.record import bulk, matrix, mbarriers
from consan.instrument.record.sides import reads_global, writes_global

ACCESSES = frozenset({"load", "store", "atomic", "reduction", "ldmatrix", "stmatrix"})
BARRIERS = frozenset({"barrier", "warp-barrier"})
COPIES = frozenset({"cp.async", "cp.async.commit", "cp.async.wait"})
_IGNORED = frozenset({"fence"})
_REFUSED = {"mbarrier": mbarriers.refused, "wgmma": matrix.refused} | dict.fromkeys(bulk.FAMILIES, bulk.refused)
_TAKEN = ACCESSES | BARRIERS | COPIES | mbarriers.FAMILIES | _IGNORED | _REFUSED.keys()
_UNORDERED = ("weak", "relaxed", "volatile", "mmio")


def refusal(module: Module, plans: dict[str, FunctionPlan]) -> str:
    """Why a module is not recorded; empty if it is."""
    return next(_reasons(module, plans), "")


def _reasons(module: Module, plans: dict[str, FunctionPlan]) -> Iterator[str]:
    reads, writes = recorded_sides(plans)
    for plan in plans.values():
        yield from _reasons_of(plan, plans)
        if not plan.is_entry and any(_is_side(instruction, reads, writes) for instruction in plan.function.instructions()):
            yield f"the function {plan.function.name} accesses global memory, as asynchronous copies do"
    if any(map(bulk.map_in_memory, plans.values())) and _writes(plans):
        yield "a tensor map may be in global memory, which the module writes"
    if _synchronises(module):
        yield "threads may synchronise through memory"


def recorded_sides(plans: dict[str, FunctionPlan]) -> tuple[bool, bool]:
    """Whether loads from global memory, and writes to it, can meet an asynchronous copy."""
    results = any(map(bulk.results, plans.values()))
    copies = any(work.row.family == "cp.async" for plan in plans.values() for work in plan.work)
    return results, results or copies or any(map(bulk.reads_global, plans.values()))


def _is_side(instruction: Instruction, reads: bool, writes: bool) -> bool:
    return (reads and reads_global(instruction)) or (writes and writes_global(instruction))


def _writes(plans: dict[str, FunctionPlan]) -> bool:
    return any(writes_global(instruction) for plan in plans.values() for instruction in plan.function.instructions())


def _reasons_of(plan: FunctionPlan, plans: dict[str, FunctionPlan]) -> Iterator[str]:
    name = plan.function.name
    if plan.stats.unmodelled:
        yield f"{plan.stats.unmodelled[0].opcode} is not modelled"
    for work in plan.work:
        if work.row.family not in _TAKEN or _REFUSED.get(work.row.family, _nothing)(work):
            yield f"{work.instruction.opcode} is not recorded yet"
    if not plan.is_entry and (plan.needs_slot or _ends_threads(plan)):
        yield f"the function {name} touches shared memory, synchronises or ends threads"
    if plan.is_entry and _polls(plan, graph_of(plan.function)):
        yield f"{name} polls memory in a loop"
    if plan.is_entry and "" in plan.stats.calls:
        yield f"{name} calls a function by its address"
    cluster = plan.function.directives.get("reqnctapercluster", ())
    if isinstance(cluster, tuple) and math.prod(cluster) > 1:
        yield f"{name} runs in clusters"


def _nothing(work: Work) -> bool:
    return False


def _polls(plan: FunctionPlan, graph: Graph) -> bool:
    """Whether a loop has an instruction with which it may wait for another thread: a strong load, an atomic with a result."""
    waiting = (n for n, node in enumerate(graph.nodes) if any(_may_wait(plan, step.instruction) for step in node.steps))
    return any(_repeats(graph, node) for node in waiting)


def _may_wait(plan: FunctionPlan, instruction: Instruction) -> bool:
    if family_of(instruction) == "mbarrier":
        return False  # only the wait that returns true is in the log
    return polls(instruction) and not (family_of(instruction) == "atomic" and _unused(plan, instruction))


def _unused(plan: FunctionPlan, atomic: Instruction) -> bool:
    """Whether nothing reads what an atomic returns: its register is named there only."""
    return all(plan.names[name] < 2 for name in destinations(atomic))


def _repeats(graph: Graph, start: int) -> bool:
    pending, seen = list(graph.nodes[start].successors), set[int]()
    while pending:
        node = pending.pop()
        if node == start:
            return True
        if node not in seen:
            seen.add(node)
            pending += graph.nodes[node].successors
    return False


def _ends_threads(plan: FunctionPlan) -> bool:
    return any(flow_of(instruction) == "exit" for instruction in plan.function.instructions())


def _synchronises(module: Module) -> bool:
    """Whether a release pattern can meet an acquire pattern in any memory (ISA "Release and Acquire Patterns")."""
    accesses = list(_strong(module))
    fences = any(family_of(instruction) == "fence" for function in module.functions for instruction in function.instructions())
    ordered = fences or any(access.sem not in _UNORDERED for access in accesses)
    return ordered and _has(accesses, "write") and _has(accesses, "read")


def _has(accesses: Iterable[MemoryAccess], other: str) -> bool:
    return any(access.access in (other, "rmw") for access in accesses)


def _strong(module: Module) -> Iterator[MemoryAccess]:
    for function in module.functions:
        for instruction in function.instructions():
            row = lookup(instruction.parts)
            if row is not None and row.family in ("load", "store", "atomic", "reduction"):
                yield from (access for access in row.accesses(instruction) if access.is_strong)
