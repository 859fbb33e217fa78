"""Decides which kernels the recording pass takes. Launches of any other kernel are `incomplete`, and the report names the reason.

A kernel is judged with the functions that it can reach. The rest of its file does not matter.

Taken are instructions whose rows say their effects (`Row.makes`), accesses in the generic proxy, and device functions (functions.py).
Not taken: what is not modelled and, where global memory is not recorded, synchronisation through shared memory (a strong store and a strong
load with an order), because the order of such accesses is not in the log, and loops that poll memory, because each round of such a loop
would fill the log; and tensor maps in global memory that may change while copies use them. The logs of such kernels have global memory
whatever is looked for (module.py).

Order through global memory alone is not in such a log either, as it is not in the shadow memory of hooks. Nearly always that is an order
between CTAs: threads of one CTA have barriers. A kernel without findings is clean with any such order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from consan.instrument.control_flow import Graph, graph_of, is_unread
from consan.instrument.effects import CopyIssue, MbarrierWait, TensorMemoryEffect
from consan.instrument.functions import annotated
from consan.instrument.isa import MemoryAccess, does, lookup, polls, row_of, spares_shared
from consan.instrument.ptx import Function, Immediate, Instruction
from consan.instrument.record.analyses import data
from consan.instrument.record.analyses.crossing import may_cross, sets_flags
from consan.instrument.record.families import global_memory, global_operands
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.functions import BY_ADDRESS, called_in_loops
from consan.instrument.rewriting.context import FunctionPlan
from consan.instrument.rewriting.tensor_operands import has_map

_COUNTERS = frozenset({"add", "inc", "dec"})
_UNKNOWN_MEMORIES = ("shared", "generic")
_MEMORIES = (*_UNKNOWN_MEMORIES, "global")


Plans = dict[str, FunctionPlan]


def refusals(plans: Plans, *, global_races: bool = False, isa: bool = False) -> dict[str, str]:
    """Why kernels are not recorded, by their names. `global_races`: global memory is checked too. `isa`: the strict reading."""
    kernels = {name: reached(plans, name) for name, plan in plans.items() if plan.is_entry}
    found = ((name, next(_reasons(own, mode_of(own, global_races=global_races)[0], isa), "")) for name, own in kernels.items())
    return {name: reason for name, reason in found if reason}


def reached(plans: Plans, *kernels: str) -> Plans:
    """The functions that kernels can execute, in text order. A call by address may reach any device function."""
    found, pending = set[str](), list(kernels)
    while pending:
        name = pending.pop()
        if name in plans and name not in found:
            found.add(name)
            pending += plans[name].stats.calls
        elif name == BY_ADDRESS:
            pending += (each for each, plan in plans.items() if not plan.is_entry and each not in found)
    return {name: plan for name, plan in plans.items() if name in found}


def mode_of(plans: Plans, *, global_races: bool) -> tuple[Mode, bool]:
    """How global memory is recorded, and whether threads may synchronise through shared memory."""
    if not global_races:
        return Mode.OFF, False
    named = any(annotated.orders(plan.function) for plan in plans.values())
    shared = named or global_memory.synchronises(plans, _UNKNOWN_MEMORIES) or polls_shared(plans) or _may_cross(plans)
    return global_memory.mode_of(plans, shared=shared), shared


def modes_of(plans: Plans, *, global_races: bool, ordered: Collection[str] = ()) -> dict[str, tuple[Mode, bool]]:
    """The `mode_of` each function, by the kernels that reach it. Kernels that share a device function are recorded alike.

    `ordered`: kernels whose threads synchronise through memory: with these, global memory is recorded though it is not checked.
    """
    groups: list[Plans] = []
    for kernel in (name for name, plan in plans.items() if plan.is_entry):
        own = reached(plans, kernel)
        joined = [group for group in groups if any(name in group for name in own)]
        groups = [group for group in groups if group not in joined]
        groups.append({name: plan for group in (*joined, own) for name, plan in group.items()})
    modes = ((group, mode_of(group, global_races=global_races or not group.keys().isdisjoint(ordered))) for group in groups)
    return {name: mode for group, mode in modes for name in group}


def is_unordered(plans: Plans) -> bool:
    """Whether nothing that the kernel does through memory orders its threads: no release, no acquire, and no wait for a store."""
    if global_memory.orders(plans, _MEMORIES) or any(annotated.orders(plan.function) for plan in plans.values()):
        return False
    looped = called_in_loops(plans)
    return not any(True for plan in plans.values() for _ in _polls(plan, (True, True), looped=plan.function.name in looped))


def may_lack_order(plans: Plans) -> bool:
    """Whether a finding of the kind `missing-order` is possible: a relaxed load gives data (R-MO1), or a thread may set a flag (R-MO2)."""
    functions = [plan.function for plan in plans.values()]
    return any(data.loads_of_data(function) or sets_flags(function) for function in functions)


def _reasons(plans: Plans, mode: Mode, isa: bool) -> Iterator[str]:
    if mode is Mode.OFF and any(annotated.orders(plan.function) for plan in plans.values()):
        yield "consan_release and consan_acquire need global memory to be checked (--global)"
    looped, logged = called_in_loops(plans), recorded_sides(plans) if mode is Mode.OFF else (False, False)
    for plan in plans.values():
        yield from _reasons_of(plan)
        if mode is not Mode.SYNCED and any(_polls(plan, logged, looped=plan.function.name in looped)):
            yield f"{plan.function.name} polls memory in a loop"
    if isa and mode is Mode.OFF and any(map(global_operands.fetches, plans.values())) and _reads_flags(plans):
        yield "a bulk load may read what a flag in global memory announces (--policy isa, D14)"
    if mode is Mode.OFF and _may_change_maps(plans):
        yield "tensor maps in global memory may change"
    synchronises = mode is not Mode.SYNCED and global_memory.synchronises(plans, _UNKNOWN_MEMORIES if mode is Mode.OFF else _MEMORIES)
    if synchronises or (mode is Mode.OFF and _may_cross(plans)):
        yield "threads may synchronise through memory"


def _may_change_maps(plans: Plans) -> bool:
    """Whether tensor copies have maps that are no parameters, and something writes to global memory (R-B7)."""
    instructions = (each for plan in plans.values() for each in plan.function.instructions())
    return any(map(has_map, plans.values())) and any(map(_writes_global, instructions))


def _writes_global(instruction: Instruction) -> bool:
    row = row_of(instruction)
    named = row.is_ordinary or row.changes_map
    return named and any(access.may_be_global and access.writes for access in row.accesses(instruction))


def _may_cross(plans: Plans) -> bool:
    return any(may_cross(plan.function) for plan in plans.values())


def recorded_sides(plans: Plans) -> tuple[bool, bool]:
    """Whether loads from global memory, and writes to it, can meet an asynchronous copy."""
    results = any(map(global_operands.results, plans.values()))
    copies = any(work.row.does(CopyIssue) for plan in plans.values() for work in plan.work)
    return results, results or copies or any(map(global_operands.fetches, plans.values()))


def _reasons_of(plan: FunctionPlan) -> Iterator[str]:
    # An instruction that spares shared memory is listed as not modelled; the rest of the kernel is recorded. So it is with gaps that are no
    # instruction, and with what is recorded in part.
    gaps = (each.opcode for each in plan.stats.unmodelled if each.is_instruction)
    yield from (f"{opcode} is not modelled" for opcode in gaps if not _spares(tuple(opcode.split("."))))
    for work in plan.work:
        if not work.row.is_described:
            yield f"{work.instruction.opcode} is not recorded yet"
        if work.row.does(TensorMemoryEffect) and not plan.is_entry:  # its loads are numbered within a kernel
            yield f"{work.instruction.opcode} in a device function is not recorded yet"


def _spares(parts: tuple[str, ...]) -> bool:
    """Whether the log is right without what is not modelled of an opcode: no shared memory, or no order that there is not."""
    row = lookup(parts)
    return spares_shared(parts) or (row is not None and row.status == "in part")


def polls_shared(plans: Plans) -> bool:
    """Whether loops poll shared memory, in the kernel or by calls."""
    looped = called_in_loops(plans)
    found = (each for plan in plans.values() for each in _polls(plan, (False, False), looped=plan.function.name in looped))
    return not all(map(_sleeps, found))


def _sleeps(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    return row is not None and row.sleeps


def _polls(plan: FunctionPlan, logged: tuple[bool, bool], *, looped: bool) -> Iterator[Instruction]:
    """The instructions in loops with which a thread may wait for another: a strong load, an atomic with a result.

    `logged`: whether loads from global memory, and writes to it, are in the log; else polls of global memory do not count, and nor do
    pauses beside them, or beside waits for an mbarrier (libcu++ before sm_90). `looped`: the function is called in a loop.
    """
    waiting = plan.function.once(_waiting)
    if not waiting:
        return
    graph: Graph = graph_of(plan.function)
    steps = [step.instruction for number, node in enumerate(graph.nodes) if looped or graph.repeats(number) for step in node.steps]
    found = [each for each in steps if each.start in waiting]
    outside = [each for each in found if _is_global(each)]
    pauses = bool(outside) or any(row_of(each).is_phase_wait for each in steps)
    yield from (each for each in found if (_is_logged(each, *logged) if each in outside else not (pauses and _sleeps(each))))


def _is_logged(poll: Instruction, reads: bool, writes: bool) -> bool:
    """Whether each round of a poll of global memory is in the log. An atomic that counts is no poll: each round has work of its own."""
    return reads if row_of(poll).is_load else writes and not _counts(poll)


def _counts(atomic: Instruction) -> bool:
    row = lookup(atomic.parts)
    assert row is not None
    step = row.event(atomic).operand("src")
    return not _COUNTERS.isdisjoint(row.modifiers(atomic.parts).values()) and not (isinstance(step, Immediate) and step.value == 0)


def _is_global(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    return row is not None and row.describe(instruction).in_global


def _waiting(function: Function) -> frozenset[int]:
    """The starts of the instructions with which a thread in a loop may wait for another one."""
    return frozenset(each.start for each in function.instructions() if _may_wait(function, each))


def _may_wait(function: Function, instruction: Instruction) -> bool:
    if not polls(instruction) or does(instruction, MbarrierWait):
        return False  # of waits for an mbarrier only the one that returns true is in the log
    return not (row_of(instruction).is_atomic and is_unread(function, instruction))


def _reads_flags(plans: Plans) -> bool:
    """Whether a strong load may be of a flag in global memory."""
    return any(access.may_be_global and not access.writes for access in _strong(plans))


def _strong(plans: Plans) -> Iterator[MemoryAccess]:
    for plan in plans.values():
        for instruction in plan.function.instructions():
            row = lookup(instruction.parts)
            if row is not None and row.is_ordinary:
                yield from (access for access in row.accesses(instruction) if access.is_strong)
