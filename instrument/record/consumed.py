"""Loads from tensor memory that need no `tcgen05.wait::ld`, because each register that they write has been used (SEMANTICS T2).

The ISA respects a true register dependency on a `tcgen05.ld` ("Register dependencies, same thread"), and the first use of the registers
waits for the load. A forward analysis of what may hold on some path: for each load the registers that nothing has used yet. An instruction
after which none is left completes the load. A move passes the mark on to its destination; a guarded use counts as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from consan.instrument.isa import has_action, sources
from consan.instrument.passes.flow import Graph, Key, key_of, written
from consan.instrument.ptx import Instruction

_State = dict[int, frozenset[Key]]  # by the number of the load


def consumed(graph: Graph, loads: dict[int, int], waits: set[int]) -> dict[int, list[int]]:
    """The loads that an instruction completes, by its start. `loads`: their numbers by their start; `waits`: starts of waits."""
    states: dict[int, _State] = {entry: {} for entry in graph.entries}
    pending = sorted(graph.entries)
    while pending:
        number = pending.pop(0)
        state = dict(states[number])
        for _ in _through((step.instruction for step in graph.nodes[number].steps), state, loads, waits):
            pass
        for successor in graph.nodes[number].successors:
            if _join(states, successor, state) and successor not in pending:
                pending.append(successor)
    found: dict[int, list[int]] = {}
    for number, before in states.items():
        for instruction, load in _through((step.instruction for step in graph.nodes[number].steps), dict(before), loads, waits):
            found.setdefault(instruction.start, []).append(load)
    return found


def _through(
    instructions: Iterable[Instruction], state: _State, loads: dict[int, int], waits: set[int]
) -> Iterator[tuple[Instruction, int]]:
    """Change a state by instructions; yields each that completes a load."""
    for instruction in instructions:
        if instruction.start in waits:
            state.clear()
        elif instruction.start in loads:
            state[loads[instruction.start]] = frozenset(written(instruction))
        elif state:
            read = {key_of(instruction.scope, name) for name in _read(instruction)}
            for load in [load for load, registers in state.items() if registers & read]:
                state[load] -= read
                if has_action(instruction, "arithmetic", "move"):
                    state[load] |= frozenset(written(instruction))
                if not state[load]:
                    del state[load]
                    yield instruction, load


def _read(instruction: Instruction) -> tuple[str, ...]:
    try:
        return tuple(sources(instruction))
    except (LookupError, ValueError):
        return ()


def _join(states: dict[int, _State], node: int, more: _State) -> bool:
    """Add what may hold on one more path; returns whether that is new."""
    known = states.get(node)
    if known is None:
        states[node] = dict(more)
        return True
    grown = False
    for load, registers in more.items():
        if not registers <= known.get(load, frozenset()) or load not in known:
            known[load] = known.get(load, frozenset()) | registers
            grown = True
    return grown
