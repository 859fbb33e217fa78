"""Loops that a thread leaves only if memory changes, whatever a clock says and however it counts: polls with a back-off, as libcu++ waits.

While no memory changes, a round of such a loop is as good as any other: each passes all branches that leave the loop, and what they depend
on is read anew in each round, or is not written in the loop. It changes no memory, and its other branches stay inside.

Not such a loop: one with a time limit (a way out that depends on a clock), with collectives, stores, or calls but those of hooks; or with
atomics, but for one that is known to have left memory as it was (`held_at`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from consan.instrument.control_flow import Graph, Key, graph_of, keys_read, written
from consan.instrument.control_flow.paths import has_cycle, natural_loops, reached
from consan.instrument.isa import row_of
from consan.instrument.ptx import Function, Instruction

from .operands import is_clock, is_of_hooks
from .program import is_aligned, is_collective
from .reach import HOOKS


class PatientLoops:
    """Those of one function, found when they are asked for."""

    def __init__(self, function: Function) -> None:
        self._graph: Graph = graph_of(function)
        self._after, self._before = self._graph.successors, self._graph.predecessors
        self._nodes = {step.instruction.start: number for number, node in enumerate(self._graph.nodes) for step in node.steps}
        self._known: dict[int, bool] = {}

    def begins_at(self, start: int) -> bool:
        """Whether an instruction is the first of one."""
        node = self._nodes[start]
        if node not in self._known:
            body = self._body_of(node)
            self._known[node] = bool(body) and self._is_entered_at(node, body) and self._waits(body)
        return self._known[node] and self._graph.nodes[node].steps[0].instruction.start == start

    def held_at(self, head: Instruction, read: Instruction) -> bool:
        """Whether a thread that has come from `read` to the loop's first instruction stays for ever, if memory keeps what it has read.

        Each way from the head to one out of the loop passes the read: so the last round has tested what was read. And no way around
        the loop leads back to its head without an access or a barrier, which the thread's log would have.
        """
        top = self._nodes[head.start]
        first = self._graph.nodes[top].steps[0].instruction is head
        return first and any(self._holds(top, body, read) for body in natural_loops(self._before, top))

    def _holds(self, top: int, body: frozenset[int], read: Instruction) -> bool:
        """The same for one of the loops with this head."""
        inner = self._nodes[read.start]
        if inner not in body or not self._is_entered_at(top, body) or not self._waits(body, read):
            return False
        leaving = self._leaving(body)
        if top != inner and leaving & reached(self._after, (top,), body - {inner}):
            return False
        outside = {each for node in leaving for each in self._after[node]} - body
        passed = {number for number in range(len(self._after)) if number == top or (number not in body and self._is_unrecorded(number))}
        return top not in reached(self._after, outside, passed)

    def _leaving(self, body: frozenset[int]) -> set[int]:
        """The nodes of a loop from which a thread may go on outside."""
        return {node for node in body if not body.issuperset(self._after[node])}

    def _is_unrecorded(self, node: int) -> bool:
        """Whether a node leaves nothing in a log of all accesses to shared and global memory."""
        return all(_is_quiet(step.instruction) and not _is_logged(step.instruction) for step in self._graph.nodes[node].steps)

    def _body_of(self, head: int) -> frozenset[int]:
        """The ways that lead back to a node from below: each way to its begin that does not come from above it. Empty: it is no head."""
        return next(reversed(natural_loops(self._before, head)), frozenset())

    def _is_entered_at(self, head: int, body: frozenset[int]) -> bool:
        return all(before in body for node in body - {head} for before in self._before[node])

    def _waits(self, body: frozenset[int], read: Instruction | None = None) -> bool:
        inside = [step.instruction for node in body for step in self._graph.nodes[node].steps]
        if not all(each is read or _is_quiet(each) for each in inside):
            return False
        steady = steady_registers(inside)
        leaving = self._leaving(body)
        return bool(leaving) and all(self._is_sure(body, node, steady) for node in leaving)

    def _is_sure(self, body: frozenset[int], node: int, steady: Callable[[Key], bool]) -> bool:
        """Whether each round passes a way out, which depends on memory only."""
        guard = self._graph.nodes[node].guard
        return guard is not None and steady(guard.register) and not has_cycle(self._after, body - {node})


def _is_quiet(instruction: Instruction) -> bool:
    """Whether an instruction changes nothing but registers, is of its own thread, and goes on in its function."""
    row = row_of(instruction)
    if HOOKS in instruction.text and (row.calls or row.traps or is_of_hooks(instruction)):
        return True
    if row.ends or row.calls or row.is_indexed or is_collective(instruction) or is_aligned(instruction):
        return False
    return bool(row.flow) or row.is_quiet or row.is_phase_wait


def _is_logged(instruction: Instruction) -> bool:
    row = row_of(instruction)
    return row.is_load and bool(row.touches) and row.describe(instruction).is_visible


def steady_registers(inside: list[Instruction]) -> Callable[[Key], bool]:
    """Tells of a register whether it has the same value in each round while no memory changes."""
    writers: dict[Key, list[Instruction]] = {}
    for instruction in inside:
        for key in written(instruction):
            writers.setdefault(key, []).append(instruction)
    known: set[Key] = set()

    def is_steady(key: Key) -> bool:
        return key in known or key not in writers

    def follows(key: Key) -> bool:
        (instruction,) = writers[key]
        is_plain = instruction.predicate is None and not any(map(is_clock, instruction.operands))
        return is_plain and all(map(is_steady, keys_read(instruction)))

    while new := {key for key in _single(writers) if key not in known and follows(key)}:
        known |= new
    return is_steady


def _single(writers: dict[Key, list[Instruction]]) -> Iterator[Key]:
    return (key for key, instructions in writers.items() if len(instructions) == 1)
