"""The ways that threads take through a kernel, as far as their index in the CTA decides its branches."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from consan.instrument.between.data import DataFlow
from consan.instrument.control_flow import Graph, Guard, Key
from consan.instrument.relations import Thread, Value

Decisions = dict[Key, int | None]
"""The values of predicates in a thread; None: not known."""


class DecidedBranches:
    """The predicates of guards in one kernel that follow from the index of the thread."""

    def __init__(self, graph: Graph, data: DataFlow) -> None:
        self._graph, self._data = graph, data

    def of(self, threads: Iterable[Thread]) -> list[Decisions]:
        """The different decisions of some threads."""
        decided = dict.fromkeys(tuple(self.of_thread(thread).values()) for thread in threads)
        return [dict(zip(self._values, each, strict=True)) for each in decided]

    def of_thread(self, thread: Thread) -> Decisions:
        """The decisions of a thread."""
        return {key: value.of(thread) for key, value in self._values.items()}

    def edges(self, decisions: Decisions) -> list[tuple[int, ...]]:
        """The nodes that may follow each node, where branches are decided."""
        return [self._ways(number, decisions) for number in range(len(self._graph.nodes))]

    @cached_property
    def _values(self) -> dict[Key, Value]:
        guards = {step.guard.register for step in self._graph.steps() if step.guard is not None}
        values = {key: self._data.value_of(key) for key in guards}
        return {key: value for key, value in values.items() if value.of((0, 0, 0)) is not None}

    def _ways(self, number: int, decisions: Decisions) -> tuple[int, ...]:
        node = self._graph.nodes[number]
        held = None if node.guard is None else decisions.get(node.guard.register)
        if held is None:
            return node.successors
        return node.taken if holds(node.guard, held) else () if node.falls is None else (node.falls,)


def holds(guard: Guard | None, held: int) -> bool:
    """Whether an instruction with a guard executes, if its register has a value."""
    return guard is None or bool(held) == guard.value
