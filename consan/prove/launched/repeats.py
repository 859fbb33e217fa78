"""Faults of a launch of a proven kernel that are no races, and whether a recorded launch has shown it.

A proof speaks of races alone. The threads at a barrier, and the bytes of shared memory that are written, may differ from launch to launch.
Here the text says what that follows from: a backward slice of all branches, guards and operands that decide it. If the slice ends in
numbers of threads and CTAs, constants and parameters, then launches of one grid and block with the same values of these parameters do the
same, and one that was recorded shows it for all. If memory or another lane decides, each launch has to be recorded.

Not followed: the addresses of loads in shared memory. A load that data choose there may read bytes that no thread has written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from consan.instrument.control_flow import Key, definitions, graph_of, guard_of, keys_read, read
from consan.instrument.control_flow.slices import backward_slice, deciding_keys, touched_spaces
from consan.instrument.isa import Row, lookup, row_of
from consan.instrument.ptx import Function, Instruction
from consan.prove.environment import parameter_words

_OF_THE_LAUNCH: Final = re.compile(r"%(n?tid|n?ctaid|laneid|lanemask_\w+|\w*cluster\w*)(\.[xyz])?")


def deciding_parameters(function: Function) -> tuple[int, ...] | None:
    """The places of the parameters that decide what a proof does not speak of; None: more than parameters decides it."""
    rows = (lookup(each.parts) for each in function.instructions())
    if any(row is None or row.calls for row in rows):
        return None
    names, text, found = [each.name for each in function.params], _Decisions(function), set[int]()
    for each in backward_slice(definitions(function), text.seeds(), text.sources):
        row = row_of(each)
        if row.is_load and (words := parameter_words(each, names)):
            found.update(names.index(name) for name, _ in words.values())
        elif not (row.is_arithmetic or row.is_of_addresses) or not all(map(_is_of_the_launch, _specials(each))):
            return None
    return tuple(sorted(found))


class _Decisions:
    """The branches of a kernel, and what they follow from."""

    def __init__(self, function: Function) -> None:
        self._graph = graph_of(function)
        self._nodes = {step.instruction.start: number for number, node in enumerate(self._graph.nodes) for step in node.steps}

    def seeds(self) -> Iterator[Key]:
        """The registers that decide whether, and how, threads synchronise or touch shared memory."""
        for node in self._graph.nodes:
            for each in (step.instruction for step in node.steps):
                row = row_of(each)
                if _matters(each, row):
                    yield from self._reaching(each)
                    yield from () if row.is_load and row.is_ordinary else deciding_keys(each, row)

    def sources(self, instruction: Instruction) -> list[Key]:
        """The keys that a result follows from: those that the instruction reads, and those that decide whether it is executed."""
        return [*keys_read(instruction), *self._reaching(instruction)]

    def _reaching(self, instruction: Instruction) -> Iterator[Key]:
        """The registers of the guard of an instruction, and of the branches on which it depends."""
        guard = guard_of(instruction)
        yield from () if guard is None else (guard.register,)
        pending, seen = [self._nodes[instruction.start]], set[int]()
        while pending:
            for branch in self._graph.post_dominators.control_dependence[pending.pop()] - seen:
                seen.add(branch)
                pending.append(branch)
                yield from keys_read(self._graph.nodes[branch].steps[-1].instruction)


def _matters(instruction: Instruction, row: Row) -> bool:
    """Whether an instruction synchronises, needs other lanes, or touches shared memory."""
    if row.is_arithmetic or row.is_of_addresses or row.branches or row.returns:
        return False
    return not row.is_ordinary or "shared" in touched_spaces(row, instruction, "read") | touched_spaces(row, instruction, "write")


def _specials(instruction: Instruction) -> Iterator[str]:
    """The special registers that an instruction reads."""
    return (name for name in read(instruction) if name.startswith("%") and not instruction.scope.is_register(name))


def _is_of_the_launch(special: str) -> bool:
    """Whether a special register has the same value in a thread of each launch with one grid and block."""
    return _OF_THE_LAUNCH.fullmatch(special) is not None
