"""Instructions in the reach of a synchronising instruction that are not in the log: then a replay does not show whether it is needed.

The reach goes along the control flow, forwards and backwards, up to the next barrier of all threads. Warp-synchronous instructions behind a
`bar.warp.sync` may rely on it to bring the lanes together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from consan.instrument.control_flow import ENDS, graph_of, key_of, read, written
from consan.instrument.control_flow.paths import Edges
from consan.instrument.control_flow.places import instructions_of, places_reached
from consan.instrument.effects import Fence, MbarrierInit, WarpSync
from consan.instrument.isa import does, flow_of, lookup
from consan.instrument.ptx import Function, Instruction

_SHARED_FLAG = "there is a flag in shared memory in its reach: the run had one order of its accesses"


def is_full(instruction: Instruction) -> bool:
    """A barrier of all threads of the CTA, which all of them pass."""
    row = lookup(instruction.parts)
    return row is not None and row.awaited and instruction.predicate is None and "count" not in row.roles(instruction)


class BarrierReach:
    """The reaches in one kernel. `global_races`: the log has all accesses to global memory. `flags`: threads may synchronise through it."""

    def __init__(self, function: Function, *, global_races: bool, flags: bool) -> None:
        self._graph, self._global_races, self._flags = graph_of(function), global_races, flags
        self._steps = instructions_of(self._graph)
        self._used = {key_of(each.scope, name) for steps in self._steps for each in steps for name in read(each)}

    def obstacle(self, lines: set[int]) -> str:
        """Why a replay cannot judge the instructions at PTX lines; empty if nothing is in the way."""
        around = (*self._behind(lines, is_full), *self._before(lines, is_full))
        return next(filter(None, map(self._why, around)), "")

    def together(self, lines: set[int]) -> bool:
        """Whether warp-synchronous instructions come behind, before the lanes meet again."""
        rows = (lookup(each.parts) for each in self._behind(lines, _meets))
        return any(row is not None and (row.exchanges or row.is_of_matrices or row.is_of_products) for row in rows)

    def initialises(self, lines: set[int]) -> bool:
        """Whether mbarriers are initialised before, behind the last barrier of all threads."""
        return any(does(each, MbarrierInit) for each in self._before(lines, is_full))

    def _behind(self, lines: set[int], stops: Callable[[Instruction], bool]) -> Iterator[Instruction]:
        return _reached(self._steps, self._graph.successors, lines, stops)

    def _before(self, lines: set[int], stops: Callable[[Instruction], bool]) -> Iterator[Instruction]:
        return _reached([each[::-1] for each in self._steps], self._graph.predecessors, lines, stops)

    def _why(self, instruction: Instruction) -> str:
        row, flow = lookup(instruction.parts), flow_of(instruction)
        if row is None or row.calls:
            return f"{instruction.opcode} in its reach is not followed"
        if row.is_never_recorded:
            return f"{instruction.opcode} in its reach is not recorded"
        if flow in ENDS:
            return "" if self._global_races else "threads exit in its reach, and global memory was not recorded"
        access = row.describe(instruction) if row.is_recorded_access else None
        if access is not None and not (access.may_be_global or access.is_of_elements):
            return _SHARED_FLAG if self._is_flag(instruction) else ""
        if access is None:
            return "" if not row.does(Fence) or self._global_races else f"{instruction.opcode} in its reach is not recorded"
        if not self._global_races:
            return "there are global accesses in its reach, and global memory was not recorded"
        flag = self._flags and access.is_strong
        return "there is a flag in global memory in its reach: the run had one order of its accesses" if flag else ""

    def _is_flag(self, instruction: Instruction) -> bool:
        """Whether threads may signal each other by an access to shared memory: a strong one, whose value is used if it has one."""
        row = lookup(instruction.parts)
        if row is None or not row.describe(instruction).is_strong:
            return False
        return row.is_load or row.is_store or not self._used.isdisjoint(written(instruction))


def _meets(instruction: Instruction) -> bool:
    return is_full(instruction) or does(instruction, WarpSync)


def _reached(steps: list[list[Instruction]], edges: Edges, lines: set[int], stops: Callable[[Instruction], bool]) -> Iterator[Instruction]:
    """The instructions that a walk from those at some lines comes to, up to one that stops it."""
    starts = [(node, at + 1) for node, inside in enumerate(steps) for at, each in enumerate(inside) if each.line in lines]
    places = places_reached(steps, edges, starts, lambda each: each.line in lines or stops(each))
    return (each for node, at in places if (each := steps[node][at]).line not in lines)
