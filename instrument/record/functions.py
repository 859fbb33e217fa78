"""Device functions: selects those that are recorded, and passes a thread's place in its log through a call.

A function has registers of its own. So a caller stores the cursor and the hashes in memory before the call, the function loads them where
it begins and stores them where it returns, and the caller loads them again. The place in memory belongs to the thread
(text.STATES), so calls by address, recursion and any signature need nothing more. A function stays as it is if neither it nor
a function that it calls has anything to record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from consan.instrument.control_flow import graph_of
from consan.instrument.functions.analyse import callee
from consan.instrument.functions.points import members_of
from consan.instrument.isa import row_of
from consan.instrument.ptx import Instruction
from consan.instrument.record.families import mbarriers
from consan.instrument.record.families.global_memory import touches
from consan.instrument.record.families.global_operands import reads_global, writes_global
from consan.instrument.rewriting.context import FunctionPlan

Plans = dict[str, FunctionPlan]
BY_ADDRESS = ""  # among the names of called functions


def recorded_functions(plans: Plans, reads: bool, writes: bool, *, global_races: Collection[str]) -> frozenset[str]:
    """The device functions that have events, end threads, or call such functions. `reads`, `writes`: sides.py.

    `global_races`: the functions whose accesses to global memory are recorded.
    """
    found = {
        name for name, plan in plans.items() if not plan.is_entry and _has_events(plan, reads, writes, global_races=name in global_races)
    }
    while more := {name for name, plan in plans.items() if not plan.is_entry and name not in found and _reaches(plan, found)}:
        found |= more
    return frozenset(found)


def _has_events(plan: FunctionPlan, reads: bool, writes: bool, *, global_races: bool) -> bool:
    return any(_is_event(each, reads, writes, global_races=global_races) for each in plan.function.instructions()) or bool(plan.work)


def _is_event(instruction: Instruction, reads: bool, writes: bool, *, global_races: bool) -> bool:
    if global_races and touches(instruction):
        return True
    if row_of(instruction).exits or members_of(instruction) is not None:
        return True
    return (reads and reads_global(instruction)) or (writes and writes_global(instruction))


def _reaches(plan: FunctionPlan, recorded: set[str]) -> bool:
    return bool(recorded) and (BY_ADDRESS in plan.stats.calls or not recorded.isdisjoint(plan.stats.calls))


def is_recorded_call(instruction: Instruction, recorded: frozenset[str]) -> bool:
    """Whether a recorded function may be called. A call by address may reach any function of the module."""
    if not row_of(instruction).calls:
        return False
    return bool(recorded) and callee(instruction) in {None, *recorded}


def called_in_loops(plans: Plans) -> frozenset[str]:
    """The functions that a thread may execute more than once for one call site: called in a loop, by such a function, or by itself."""
    calls = {name: list(_calls(plan)) for name, plan in plans.items()}
    found = {target for each in calls.values() for target, repeats in each if repeats}
    found |= {name for name in plans if name in _targets(calls, name)}
    for name in tuple(found):
        found |= _targets(calls, name)
    if BY_ADDRESS in found:
        found |= {name for name, plan in plans.items() if not plan.is_entry}
    return frozenset(found)


def _calls(plan: FunctionPlan) -> Iterator[tuple[str, bool]]:
    """The functions that a function calls, and whether in a loop."""
    if not plan.stats.calls:
        return
    graph = graph_of(plan.function)
    for number, node in enumerate(graph.nodes):
        called = [callee(step.instruction) or BY_ADDRESS for step in node.steps if row_of(step.instruction).calls]
        if called:
            repeats = graph.repeats(number)
            yield from ((name, repeats) for name in called)


def _targets(calls: dict[str, list[tuple[str, bool]]], name: str) -> set[str]:
    """All functions that a call of a function can lead to."""
    found, pending = set[str](), [name]
    while pending:
        more = {target for target, _ in calls.get(pending.pop(), ())} - found
        if BY_ADDRESS in more:
            more |= calls.keys() - found
        found |= more
        pending += more
    return found


def may_part(plans: Plans, recorded: frozenset[str]) -> bool:
    """Whether lanes of a warp may part in a recorded function: then every warp-synchronous instruction is in the log."""
    return any(_may_part(plan) for name, plan in plans.items() if name in recorded)


def _may_part(plan: FunctionPlan) -> bool:
    return any(map(mbarriers.is_wait, plan.work)) or any(members_of(each) is not None for each in plan.function.instructions())
