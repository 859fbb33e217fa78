"""Registers of asynchronous matrix instructions that are accessed too early (R-G4 and R-G5), found in the text.

ISA "wgmma.wait_group": accessing the accumulator registers, or the registers with the fragments of A, before a
`wgmma.wait_group` that waits for the group of their `wgmma.mma_async` is undefined (R-G4). ISA "wgmma.fence": a fence must stand
before the first `wgmma.mma_async`, and between an access to a register and an `mma_async` that uses it as accumulator or for A;
accumulators of consecutive `mma_async` of one shape need none (R-G5).

A forward analysis on the control-flow graph (`flow.py`), of the values that may hold on some path. For each register it keeps the youngest
`mma_async` in flight that uses it, with its age: -1 while uncommitted, else the number of groups committed after its own. `wait_group N`
retires age N and older. One entry per register is enough, because an older `mma_async` on it retires no later. So the state is bounded by
the number of such registers, however far a loop is unrolled. For R-G5 it keeps the accesses since the last fence.

A hazard that needs two values of one predicate register on one path is no hazard. Before a report, the graph is split by each register
that guards several instructions (`flow.split`), and then by what is known of counters (`counted`): an epilogue in the last turn of a
loop, which another counter ends, reads accumulators that no later turn uses (Pallas's pipelines).

Choices where the ISA is strict and nothing can go wrong, or where it is silent:
- An ordinary read of A registers in flight is silent (two reads commute), and so is a read before an `mma_async` reads them.
- Accumulators of an `mma_async` in flight that one of a different shape accumulates into, and registers of A that become accumulators, need
  a fence only. An A operand that is an accumulator in flight needs the wait.
- The fence is also required if scale-d is false: the old value is not used, but an earlier write of the compiler may land after it.
- A call ends all knowledge: everything in flight or unfenced is forgotten, and functions that are not kernels begin fenced.
- A guarded wait, fence or commit counts as not executed, unless what depends on it has the same guard.

Writes after the fence (`written-after-fence`, a warning): in correct kernels, compilers sink plain writes of the registers below
`wgmma.fence`, which does not name them: `asm volatile` of CUDA C++, the intrinsic of LLVM. ptxas orders such writes before the `wgmma` by
itself (C7519), behind branches too: CUTLASS's persistent GEMM in CuTe DSL waits for its first stage between the two. The fence must come
first on all paths; writes have no guard, and no call, wait or matrix instruction on the registers lies between, and no commit, unless
a `mov` writes: the zeros of a second accumulator sink behind the group of the first one.

Copies are accesses: a `mov` of an accumulator in flight is reported like any other read. Optimised code has no such copies: the value
before and after an `mma_async` is one register, tied by the "+f" of the inline assembly. Debug builds have them: the values of each
statement go through memory, also directly after the `mma_async`, whatever the source does about waiting. So such modules
(`.target sm_90a, debug`) are not checked.

Effect in practice: the ISA says undefined. ptxas has its own analysis and repairs most cases that it sees, and it renames a register that
is overwritten too early, so such a kernel may compute the right values with one ptxas. Observed with ptxas 13.0 and nvJitLink 13.5, on
kernels of n8 to n128, with A in registers and in shared memory:
- an accumulator is read in flight, in a straight line after a `wait_group` that leaves its group pending: C7514, serialised, in all of
  160 variants whose value is used. Only this case is predicted (`serialised`).
- the same without such a wait: C7517, a wait is injected, and the pipeline remains. After a branch or a loop: either.
- an accumulator is overwritten in flight: C7515, serialised, if the new value is used and not all registers are written; else nothing.
- a missing fence, or a write after it: C7519, a fence is injected (ptxas 13.0; nvJitLink 13.5 prints nothing). Never serialised.
- A registers are accessed in flight: nothing.

Not handled: metadata registers of sparse forms (the ISA does not require it), and registers that a callee has in flight.
"""

from __future__ import annotations

from typing import Any

from consan.instrument.control_flow import Graph, Key, PathStep, graph_of, written
from consan.instrument.control_flow.counted import counted
from consan.instrument.control_flow.dataflow import forward
from consan.instrument.control_flow.splitting import repeated_guards, split
from consan.instrument.functions.analyse import callee
from consan.instrument.hazards.nearby import third_event
from consan.instrument.hazards.wgmma_state import RegisterEvent, RegisterHazard, Report, State, apply, events_of, ignore
from consan.instrument.isa import row_of
from consan.instrument.ptx import Function, Instruction, Module
from consan.instrument.rewriting.context import place_of
from consan.instrument.sites import StaticFinding

_SPLITS = 64  # limit of predicates tried to show that a hazard has no path
_DOUBLINGS = 4  # limit of kept splits: the graph is at most 16 times as large
Hazards = dict[tuple[str, int, int], RegisterHazard]


def _solve(graph: Graph, events: dict[int, RegisterEvent], fenced: bool) -> Hazards:
    """The hazards of a graph, reported once the states at its nodes no longer grow."""
    relevant = [[(step, events[id(step.instruction)]) for step in node.steps if id(step.instruction) in events] for node in graph.nodes]
    starts = {entry: State(fenced=fenced) for entry in graph.entries}
    states = forward(graph.successors, starts, lambda number, state: _through(state, relevant[number], ignore), _joined)
    found: list[RegisterHazard] = []
    for number in sorted(states):
        _through(states[number], relevant[number], found.append)
    return {hazard.identity: hazard for hazard in reversed(found)}


def _joined(known: State, more: State) -> State | None:
    both = known.copy()
    return both if both.join(more) else None


def _through(state: State, steps: list[tuple[PathStep, RegisterEvent]], report: Report) -> State:
    if not steps:
        return state
    state = state.copy()
    for step, event in steps:
        apply(state, step, event, report)
    return state


def _hazards(function: Function) -> tuple[list[RegisterHazard], dict[int, Instruction]]:
    """The feasible hazards of one function, and its instructions by their order."""
    events = events_of(function)
    if not events:
        return [], {}
    graph, fenced = graph_of(function), function.kind != "entry"
    found = _solve(graph, events, fenced)
    if found:
        found = _feasible(graph, events, fenced, found)
    return list(found.values()), {event.order: event.instruction for event in events.values()}


def _feasible(graph: Graph, events: dict[int, RegisterEvent], fenced: bool, found: Hazards) -> Hazards:
    """The hazards that remain without the paths on which one predicate has two values, or two counters of a loop do not fit.

    A split that removes no hazard is dropped, so the graph doubles a few times only.
    """
    writers: dict[Key, set[int]] = {}
    for step in graph.steps():
        for key in written(step.instruction):
            writers.setdefault(key, set()).add(id(step.instruction))
    kept = 0
    for register in repeated_guards(graph)[:_SPLITS]:
        if not found or kept == _DOUBLINGS:
            break
        smaller = split(graph, register, writers.get(register, ()))
        possible = _solve(smaller, events, fenced)
        if {hazard.second for hazard in found.values()} - {hazard.second for hazard in possible.values()}:
            graph, found, kept = smaller, possible, kept + 1
    by_counters = counted(graph) if found else None
    return found if by_counters is None else _solve(by_counters, events, fenced)


def find_register_hazards(module: Module) -> tuple[StaticFinding, ...]:
    """The register hazards of all functions of a module, in text order; none for a debug build (see above)."""
    functions = () if is_debug(module) else module.functions
    return tuple(found for function in functions for found in _findings(module, function))


def _findings(module: Module, function: Function) -> list[StaticFinding]:
    hazards, instructions = _hazards(function)
    kernels = kernels_reaching(module, function.name) if hazards else ()
    return [
        StaticFinding(
            hazard.reason,
            hazard.hazard,
            place_of(module, instructions[hazard.first]),
            place_of(module, instructions[hazard.second]),
            hazard.first_role,
            hazard.second_role,
            hazard.registers,
            hazard.leave,
            function.name,
            kernels,
            serialised=hazard.serialised,
            **_third(module, function, hazard, instructions),
        )
        for hazard in sorted(hazards, key=lambda each: (each.second, each.first, each.reason))
    ]


def _third(module: Module, function: Function, hazard: RegisterHazard, instructions: dict[int, Instruction]) -> dict[str, Any]:
    found = third_event(function, hazard, instructions)
    return {} if found is None else {"third_role": found[0], "third": place_of(module, found[1])}


def is_debug(module: Module) -> bool:
    """Whether the text is a debug build. Its registers are not the program's, so register hazards are not checked."""
    return "debug" in module.targets


def kernels_reaching(module: Module, wanted: str) -> tuple[str, ...]:
    """The kernels that can reach a function. An indirect call reaches all functions that are not kernels."""
    bodies = {f.name: f for f in module.functions if f.body is not None}
    anything = [name for name, f in bodies.items() if f.kind == "func"]
    callers: dict[str, set[str]] = {name: set() for name in bodies}
    for name, function in bodies.items():
        for instruction in function.instructions():
            if row_of(instruction).calls:
                target = callee(instruction)
                for each in anything if target is None else [target] if target in bodies else []:
                    callers[each].add(name)
    reached, pending = {wanted}, [wanted]
    while pending:
        fresh = callers[pending.pop()] - reached
        reached |= fresh
        pending += fresh
    return tuple(name for name, f in bodies.items() if f.kind == "entry" and name in reached)
