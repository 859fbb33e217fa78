"""Which writes of a register may give the value that an instruction reads, and where the value of each write goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Set
from typing import TypeAlias

from consan.instrument.control_flow.dataflow import forward
from consan.instrument.control_flow.graph import Graph, PathStep
from consan.instrument.control_flow.registers import Key, written
from consan.instrument.ptx import Instruction

Write: TypeAlias = tuple[int, Key]
"""The start of an instruction, and a register that it writes."""
_Last: TypeAlias = dict[Key, frozenset[int]]  # by register: the instructions that may have written it last
_Used: TypeAlias = Callable[[Instruction, dict[Key, int]], Iterator[tuple[Key, int]]]


def destinations_of_writes(graph: Graph, used: _Used, registers: Set[Key]) -> dict[Write, int]:
    """The destinations of each write of some registers, as bits. `used` is that of `dataflow.destinations`."""
    last = _last_writes(graph, registers)
    steps = {step.instruction.start: step.instruction for step in graph.steps()}
    goes, pending = defaultdict[Write, int](int), list(steps)
    while pending:
        start = pending.pop()
        instruction = steps[start]
        own = defaultdict[Key, int](int, {key: goes[start, key] for key in written(instruction)})
        for key, bits in used(instruction, own):
            for maker in last[start].get(key, ()):
                if bits & ~goes[maker, key]:
                    goes[maker, key] |= bits
                    pending.append(maker)
    return goes


def _last_writes(graph: Graph, registers: Set[Key]) -> dict[int, _Last]:
    """For each instruction that is reached, by its start: who may have written each of some registers last."""
    found: dict[int, _Last] = {}

    def through(number: int, before: _Last) -> _Last:
        for step in graph.nodes[number].steps:
            found[step.instruction.start] = before
            before = _behind(step, before, registers)
        return before

    forward(graph.successors, {entry: _Last() for entry in graph.entries}, through, _joined)
    return found


def _behind(step: PathStep, before: _Last, registers: Set[Key]) -> _Last:
    made = [key for key in written(step.instruction) if key in registers]
    own = frozenset((step.instruction.start,))
    return before | {key: own | before.get(key, own) if step.guard else own for key in made} if made else before


def _joined(known: _Last, more: _Last) -> _Last | None:
    both = known | {key: writers | known.get(key, writers) for key, writers in more.items()}
    return None if both == known else both
