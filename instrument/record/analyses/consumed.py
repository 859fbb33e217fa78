"""Loads from tensor memory that need no `tcgen05.wait::ld`, because each register that they write has been used (SEMANTICS T2).

The ISA respects a true register dependency on a `tcgen05.ld` ("Register dependencies, same thread"), and the first use of the registers
waits for the load. A load marks its registers until something uses them. An instruction after which none is left completes the load. A
move passes the mark on to its destination; a guarded use counts as one.
"""

from __future__ import annotations

from collections.abc import Iterator

from consan.instrument.control_flow import Graph, keys_read, written
from consan.instrument.control_flow.dataflow import Marks, spread_marks
from consan.instrument.isa import row_of
from consan.instrument.ptx import Instruction


def consumed(graph: Graph, loads: dict[int, int], waits: set[int]) -> dict[int, list[int]]:
    """The loads that an instruction completes, by its start. `loads`: their numbers by their start; `waits`: starts of waits."""

    def through(instruction: Instruction, marks: Marks) -> Iterator[int]:
        if instruction.start in waits:
            marks.clear()
        elif instruction.start in loads:
            marks[loads[instruction.start]] = frozenset(written(instruction))
        elif marks:
            yield from _used(instruction, marks)

    return spread_marks(graph, through)


def _used(instruction: Instruction, marks: Marks) -> Iterator[int]:
    reads = set(keys_read(instruction))
    for load in [load for load, registers in marks.items() if registers & reads]:
        marks[load] -= reads
        if row_of(instruction).moves:
            marks[load] |= frozenset(written(instruction))
        if not marks[load]:
            del marks[load]
            yield load
