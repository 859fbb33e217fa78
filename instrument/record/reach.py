"""Instructions in the reach of a synchronising instruction that are not in the log: a replay cannot tell then whether it is needed.

The reach goes along the control flow, forwards and backwards, up to the next barrier of all threads. Warp-synchronous instructions behind a
`bar.warp.sync` may rely on it to bring the lanes together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from consan.instrument.control_flow import ENDS, graph_of, key_of, read, written
from consan.instrument.control_flow.paths import inverse
from consan.instrument.effects import Fence, MbarrierInit, WarpSync
from consan.instrument.isa import does, flow_of, lookup
from consan.instrument.ptx import Function, Instruction

_SHARED_FLAG = "there is a flag in shared memory in its reach: the run had one order of its accesses"


@dataclass(frozen=True)
class _Text:
    """The instructions of a function, and what follows and precedes each."""

    instructions: list[Instruction]
    after: list[list[int]]
    before: list[list[int]]


def _text_of(function: Function) -> _Text:
    graph = graph_of(function)
    instructions = [step.instruction for node in graph.nodes for step in node.steps]
    firsts, total = [], 0
    for node in graph.nodes:
        firsts.append(total)
        total += len(node.steps)
    after: list[list[int]] = [[] for _ in instructions]

    def entry(node: int) -> Iterator[int]:
        """The first instruction from a node on: empty nodes fall through."""
        if graph.nodes[node].steps:
            yield firsts[node]
        else:
            for successor in graph.nodes[node].successors:
                yield from entry(successor)

    for number, node in enumerate(graph.nodes):
        places = range(firsts[number], firsts[number] + len(node.steps))
        for place in places[:-1]:
            after[place] = [place + 1]
        if node.steps:
            after[places[-1]] = [each for successor in node.successors for each in entry(successor)]
    return _Text(instructions, after, inverse(after))


def is_full(instruction: Instruction) -> bool:
    """A barrier of all threads of the CTA, which all of them pass."""
    row = lookup(instruction.parts)
    return row is not None and row.awaited and instruction.predicate is None and "count" not in row.roles(instruction)


class BarrierReach:
    """The reaches in one kernel. `outer`: the log has all accesses to global memory; `flags`: and threads may synchronise through it."""

    def __init__(self, function: Function, *, outer: bool, flags: bool) -> None:
        self._text, self._outer, self._flags = _text_of(function), outer, flags
        self._used = {key_of(each.scope, name) for each in self._text.instructions for name in read(each)}

    def obstacle(self, lines: set[int]) -> str:
        """Why a replay cannot judge the instructions at PTX lines; empty if nothing is in the way."""
        places = [place for place, each in enumerate(self._text.instructions) if each.line in lines]
        return next(filter(None, (self._why(self._text.instructions[place]) for place in self._around(places, is_full, both=True))), "")

    def together(self, lines: set[int]) -> bool:
        """Whether warp-synchronous instructions come behind, before the lanes meet again."""
        places = [place for place, each in enumerate(self._text.instructions) if each.line in lines]
        found = (lookup(self._text.instructions[place].parts) for place in self._around(places, _meets, both=False))
        return any(row is not None and (row.exchanges or row.is_of_matrices or row.is_of_products) for row in found)

    def initialises(self, lines: set[int]) -> bool:
        """Whether mbarriers are initialised before, behind the last barrier of all threads."""
        places = [place for place, each in enumerate(self._text.instructions) if each.line in lines]
        found = (self._text.instructions[place] for place in self._behind(self._text.before, places, is_full))
        return any(does(each, MbarrierInit) for each in found)

    def _around(self, places: list[int], stops: Callable[[Instruction], bool], *, both: bool) -> Iterator[int]:
        for steps in (self._text.after, self._text.before)[: 1 + both]:
            yield from self._behind(steps, places, stops)

    def _behind(self, steps: list[list[int]], places: list[int], stops: Callable[[Instruction], bool]) -> Iterator[int]:
        pending, seen = [each for place in places for each in steps[place]], set(places)
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen.add(place)
            yield place
            if not stops(self._text.instructions[place]):
                pending += steps[place]

    def _why(self, instruction: Instruction) -> str:
        row, flow = lookup(instruction.parts), flow_of(instruction)
        if row is None or row.calls:
            return f"{instruction.opcode} in its reach is not followed"
        if row.is_never_recorded:
            return f"{instruction.opcode} in its reach is not recorded"
        if flow in ENDS:
            return "" if self._outer else "threads exit in its reach, and global memory was not recorded"
        access = row.describe(instruction) if row.is_recorded_access else None
        if access is not None and not (access.may_be_global or access.in_surface):
            return _SHARED_FLAG if self._is_flag(instruction) else ""
        if access is None:
            return "" if not row.does(Fence) or self._outer else f"{instruction.opcode} in its reach is not recorded"
        if not self._outer:
            return "there are global accesses in its reach, and global memory was not recorded"
        flag = self._flags and access.is_strong
        return "there is a flag in global memory in its reach: the run had one order of its accesses" if flag else ""

    def _is_flag(self, instruction: Instruction) -> bool:
        """Whether threads may tell each other something by an access to shared memory: a strong one, whose value is used if it has one."""
        row = lookup(instruction.parts)
        if row is None or not row.describe(instruction).is_strong:
            return False
        return row.is_load or row.is_store or not self._used.isdisjoint(written(instruction))


def _meets(instruction: Instruction) -> bool:
    return is_full(instruction) or does(instruction, WarpSync)
