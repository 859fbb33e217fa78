"""Forward and backward analyses over a graph and over registers.

All find a least fixed point, so the order of visits does not matter.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from consan.instrument.control_flow.graph import Graph
from consan.instrument.control_flow.paths import Edges
from consan.instrument.control_flow.registers import Key, written
from consan.instrument.ptx import Function, Instruction

_S = TypeVar("_S")


def forward(
    edges: Edges, starts: Mapping[int, _S], through: Callable[[int, _S], _S | None], join: Callable[[_S, _S], _S | None]
) -> dict[int, _S]:
    """The state before each node that is reached: what holds on some path, or on all of them, as `join` says.

    `starts`: nodes with their first states. `through`: the state behind a node; None: no thread goes on. `join`: two states as one; None:
    the second one adds nothing to the first. Neither changes a state that it is given.
    """
    states, pending = dict(starts), sorted(starts)
    while pending:
        number = heapq.heappop(pending)  # in text order: a loop reaches its fixed point before what follows is visited
        after = through(number, states[number])
        for each in edges[number] if after is not None else ():
            assert after is not None
            joined = join(states[each], after) if each in states else after
            if joined is not None:
                states[each] = joined
                if each not in pending:
                    heapq.heappush(pending, each)
    return states


Marks = dict[int, frozenset[Key]]
"""The registers that carry each mark."""


def spread_marks(graph: Graph, through: Callable[[Instruction, Marks], Iterable[int]]) -> dict[int, list[int]]:
    """The marks that `through` gives for each instruction, by its start: what may hold on some path.

    `through` also changes the marks by the instruction.
    """

    def passed(number: int, before: Marks) -> tuple[Marks, list[tuple[int, list[int]]]]:
        marks = dict(before)
        return marks, [(step.instruction.start, list(through(step.instruction, marks))) for step in graph.nodes[number].steps]

    starts = {entry: Marks() for entry in graph.entries}
    states = forward(graph.successors, starts, lambda number, marks: passed(number, marks)[0], _united)
    found: dict[int, list[int]] = {}
    for number, before in states.items():
        for start, marks in passed(number, before)[1]:
            if marks:
                found.setdefault(start, []).extend(marks)
    return found


def _united(known: Marks, more: Marks) -> Marks | None:
    fresh = {mark: registers | known.get(mark, registers) for mark, registers in more.items()}
    return None if all(known.get(mark) == registers for mark, registers in fresh.items()) else known | fresh


def read_later(edges: Edges, uses: Sequence[Collection[Key]], makes: Sequence[Collection[Key]]) -> list[set[Key]]:
    """The registers that are read behind each node before they are written.

    `uses`: what a node reads before it writes it; `makes`: what it writes in any case.
    """
    found = [set[Key]() for _ in edges]
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(found))):
            before = len(found[number])
            for each in edges[number]:
                found[number] |= (found[each] - set(makes[each])) | set(uses[each])
            changed = changed or len(found[number]) > before
    return found


def destinations(
    function: Function,
    used: Callable[[Instruction, dict[Key, int]], Iterator[tuple[Key, int]]],
    depends: Mapping[int, tuple[Key, ...]] = MappingProxyType({}),
) -> dict[Key, int]:
    """Where the value of each register goes, as bits. All writes to one register count as one value.

    `used`: the registers that an instruction reads with their bits, given those found so far. `depends`: by the start of an instruction,
    registers besides its results whose bits its own depend on.
    """
    goes, makers, pending = defaultdict[Key, int](int), defaultdict[Key, list[Instruction]](list), list(function.instructions())
    for instruction in pending:
        for key in (*written(instruction), *depends.get(instruction.start, ())):
            makers[key].append(instruction)
    while pending:
        instruction = pending.pop()
        for key, bits in used(instruction, goes):
            if bits & ~goes[key]:
                goes[key] |= bits
                pending += makers[key]
    return goes


def union(goes: Mapping[Key, int], keys: Iterable[Key]) -> int:
    """The bits of several registers."""
    mask = 0
    for key in keys:
        mask |= goes[key]
    return mask
