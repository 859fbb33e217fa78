"""Which instructions are sites, which functions need a slot, and which variant of the runtime the module needs.

The opcode table alone decides. The variant belongs to the whole module, because functions call each other: the granule is the narrowest
access that can touch shared memory, and one partial barrier anywhere requires vector clocks (ISA "bar, barrier": a barrier without a
thread count takes all threads of the CTA).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from consan.instrument.abi.variant import Variant, needed
from consan.instrument.functions.annotated import described
from consan.instrument.functions.indirect import unknown_targets
from consan.instrument.functions.points import members_of
from consan.instrument.isa import Row, is_memory_or_sync, lookup, row_of
from consan.instrument.isa.features import beyond_the_rules
from consan.instrument.ptx import Function, Immediate, Instruction, Module, Register, Symbol
from consan.instrument.rewriting.context import FunctionPlan, Work
from consan.instrument.sites import FunctionStats, UnmodelledInstruction

UNKNOWN_CALL = "call by an address that may lie outside of the module"
_FIRST_LINE = 1  # for what holds for the whole module
_MOST_BARRIERS = 16  # per CTA (ISA "bar, barrier")
_EXTERNAL = frozenset({"vprintf", "malloc", "free", "__assertfail", "cudaGetParameterBufferV2"})


def plan_functions(module: Module, *, recorded: bool = False) -> dict[str, FunctionPlan]:
    """A plan for every function that has a body. `recorded`: for the recording engine, which takes what hooks do not check."""
    plans = {f.name: _plan(f, recorded) for f in module.functions if f.body is not None}
    for name, plan in plans.items():
        plan.stats.annotations = described(module, plan.function)
        plan.stats.unmodelled += [_gap(plan, each, UNKNOWN_CALL) for each in unknown_targets(module, plan.function)]
        if plan.is_entry:
            plan.stats.unmodelled += [UnmodelledInstruction(what, _FIRST_LINE, name) for what in beyond_the_rules(module)]
    propagate(plans)
    return plans


def _gap(plan: FunctionPlan, instruction: Instruction, name: str = "") -> UnmodelledInstruction:
    return UnmodelledInstruction(name or instruction.opcode, instruction.line, plan.function.name)


def _plan(function: Function, recorded: bool) -> FunctionPlan:
    stats = FunctionStats(function.name, function.kind)
    plan = FunctionPlan(function, stats)
    assert function.body is not None
    for instruction in function.body.instructions():
        row = row_of(instruction)
        _classify(plan, instruction, recorded)
        stats.grid_controls += row.is_of_grids
        if row.is_fence:
            stats.fence_scopes.add(row.semantics(row.modifiers(instruction.parts)).scope)
    plan.needs_slot = bool(plan.work) or any(members_of(i) is not None for i in function.body.instructions())
    plan.changes_state = any(_moves_state(w.row) or w.event.first.is_strong for w in plan.work)
    return plan


def _moves_state(row: Row) -> bool:
    """Whether its hooks change the thread's state."""
    return (row.synchronises and not row.fences_inits) or row.changes_map


def _classify(plan: FunctionPlan, instruction: Instruction, recorded: bool) -> None:
    row = lookup(instruction.parts)
    if row is not None and (row.touches or row.status in ("checked", "recorded", "in part") or row.flow):
        _check_operands(row, instruction)
    if row is not None and row.touches:
        plan.stats.writes.count(row, instruction)
    if row is not None and row.calls:
        plan.stats.calls.add(callee(instruction) or "")
        return
    if row is None:
        if is_memory_or_sync(instruction.parts):
            plan.stats.unmodelled.append(_gap(plan, instruction))
        return
    lacks = row.status in ("not modelled", "in part") or (row.status == "recorded" and not recorded)
    if lacks:
        plan.stats.unmodelled.append(_gap(plan, instruction))
    followed = row.status == "checked" or (recorded and row.status in ("recorded", "in part"))
    if followed and (touches_checked_state(row, instruction) or (recorded and row.changes_map)):
        plan.work.append(Work(instruction, row))
    elif row.touches and not lacks:
        plan.stats.private += 1


def _check_operands(row: Row, instruction: Instruction) -> None:
    """Check what the passes rely on: the number of operands of the form, and addresses where it has addresses."""
    if not row.fits(instruction):
        expected = row.notation or "no operands"
        raise instruction.source.error(instruction.start, f"the operands of '{instruction.opcode}' are not {expected}")


def touches_checked_state(row: Row, instruction: Instruction) -> bool:
    """Whether the instruction can touch shared memory or synchronises. Global accesses are added later, if the module has copies."""
    if not (row.is_access or row.changes_map):
        return True
    return any(access.may_be_shared for access in row.accesses(instruction))


def callee(instruction: Instruction) -> str | None:
    """The name of a directly called function; None for an indirect call."""
    for operand in instruction.operands:
        if isinstance(operand, Symbol):
            return operand.name
        if isinstance(operand, Register):
            return None
    return None


def propagate(plans: dict[str, FunctionPlan]) -> None:
    """A caller needs a slot if one of its callees does. An indirect call may reach any function of the module."""
    changed = True
    while changed:
        changed = False
        for plan in plans.values():
            before = (plan.needs_slot, plan.changes_state)
            for target in _reachable(plan, plans):
                plan.needs_slot |= target.needs_slot
                plan.changes_state |= target.changes_state
            changed |= before != (plan.needs_slot, plan.changes_state)


def _reachable(plan: FunctionPlan, plans: dict[str, FunctionPlan]) -> Iterable[FunctionPlan]:
    for name in plan.stats.calls:
        if name == "":
            yield from (p for p in plans.values() if not p.is_entry)
        elif name in plans:
            yield plans[name]


def external_calls(plan: FunctionPlan, plans: dict[str, FunctionPlan]) -> set[str]:
    """Called functions without a definition here, except system functions. Their accesses are not seen."""
    return {name for name in plan.stats.calls if name and name not in plans and name not in _EXTERNAL}


def choose_variant(plans: Iterable[FunctionPlan], base: Variant) -> Variant:
    """The cheapest variant that is exact for the module."""
    works = [work for plan in plans for work in plan.work]
    touched = [a for w in works if w.row.is_access for a in w.event.accesses]
    widths = [a.width_bytes or 4 for a in touched if a.may_be_shared]
    fields = needed({work.row.family for work in works})
    engine = bool(base.cluster) or "engine" in fields
    flags = engine or _synchronises_by_flags(works)
    variant = Variant(
        granule=min([*(1 << (min(width, 4).bit_length() - 1) for width in widths), 4]),
        partial=flags or any(_is_counted(work) for work in works),
        flags=flags,
        asynchronous=engine,
        cluster=base.cluster,
        engine=engine,
        named=_named_barriers(works) if engine else 0,
        isa=base.isa and engine,
        epoch_bits=base.epoch_bits,
        epoch_limit=base.epoch_limit,
    )
    given: dict[str, Any] = dict.fromkeys(fields, True)
    return replace(variant, **given)


def _is_counted(work: Work) -> bool:
    """Whether it is a barrier with a thread count."""
    return work.row.is_cta_barrier and "count" in work.event.roles


def _named_barriers(works: list[Work]) -> int:
    """A power of two above the highest id of a barrier with a thread count, so that variants stay few; 0 if there are none."""
    barriers = [work for work in works if work.row.is_cta_barrier]
    named = [(work, work.instruction.operands[work.event.roles.index("barrier")]) for work in barriers]
    # With bar.arrive in the module, a barrier whose id is in a register may be counted too, with or without a thread count.
    arrivals = any(work.row.arrives_only for work in barriers)
    names = [name for work, name in named if _is_counted(work) or (arrivals and not isinstance(name, Immediate))]
    numbers = [int(name.value) if isinstance(name, Immediate) else _MOST_BARRIERS - 1 for name in names]
    return min(1 << max(numbers).bit_length(), _MOST_BARRIERS) if numbers else 0


def _synchronises_by_flags(works: list[Work]) -> bool:
    """Whether a release pattern can meet an acquire pattern (ISA "Release and Acquire Patterns"): a strong store or atomic, a
    strong load or atomic, and an order for each, from a fence or from the operation itself."""
    accesses = [w.event.first for w in works if w.row.is_ordinary]
    strong = [access for access in accesses if access.is_strong]
    ordered = any(w.row.is_fence for w in works) or any(a.acquires or a.releases for a in strong)
    return ordered and any(a.writes for a in strong) and any(a.reads for a in strong)
