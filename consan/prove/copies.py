"""Where copies of the executing thread (`cp.async`) may be in flight, from one barrier of a CTA to the next ones.

A copy accesses memory at some time between its issue and the wait that covers it: `wait_group N` covers the groups but the N last ones,
`wait_all` all copies (ISA "cp.async.wait_group"). For each copy, the commits behind it are counted, at least: where paths join, the smaller
number holds. What has a guard may not execute: such a commit or wait counts for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from consan.instrument.control_flow import Graph, PathStep
from consan.instrument.effects import CopyCommit, CopyWait
from consan.instrument.isa import row_of
from consan.instrument.ptx import Immediate
from consan.prove.phases.counters import is_followed

Place = tuple[int, int]
"""A step: its node, and its number there."""
InFlight = Mapping[Place, int]
"""The copies that may be in flight, each with the commits behind it at least."""

_NONE: InFlight = {}
NO_GROUP: Final = -(1 << 40)
"""Of bulk copies: no wait for groups covers them."""


class CopyProgress:
    """Which copies may be in flight before each step from a barrier to the next ones."""

    def __init__(self, graph: Graph, edges: Sequence[Collection[int]], root: int, first: InFlight, *, issues: bool) -> None:
        """`first`: at the root. `issues`: whether copies that are issued here are followed, too."""
        self._graph, self._issues = graph, issues
        self._before: dict[Place, InFlight] = {}
        self._begins: dict[int, InFlight] = {root: first}
        self._ends: dict[int, InFlight] = {}
        pending = [root]
        while pending:
            node = pending.pop()
            self._ends[node] = after = self._through(node)
            for target in edges[node]:
                known = self._begins.get(target)
                joined = after if known is None else _joined(known, after)
                if joined != known:
                    self._begins[target] = joined
                    pending.append(target)

    def before(self, place: Place) -> InFlight:
        """The copies that may be in flight before a step."""
        return self._before.get(place, _NONE)

    def at_end(self, node: int) -> InFlight:
        """The copies that may be in flight at the end of a node."""
        return self._ends.get(node, _NONE)

    def _through(self, node: int) -> InFlight:
        flying = self._begins[node]
        for number, step in enumerate(self._graph.nodes[node].steps):
            place = node, number
            self._before[place] = flying
            row = row_of(step.instruction)
            if self._issues and (row.is_copy or is_followed(step.instruction)):
                flying = {**flying, place: 0 if row.is_copy else NO_GROUP}
            elif step.guard is None:
                flying = _behind(step, flying)
        return flying


def _joined(one: InFlight, other: InFlight) -> InFlight:
    return {place: min(each[place] for each in (one, other) if place in each) for place in {**one, **other}}


def _behind(step: PathStep, flying: InFlight) -> InFlight:
    """The copies that may be in flight behind an instruction without a guard."""
    for made in row_of(step.instruction).makes:
        if made.kind is CopyCommit:
            flying = {place: commits + 1 for place, commits in flying.items()}
        elif made.kind is CopyWait:
            left = _left(step) if "pending" in made.operands else 0
            flying = {place: commits for place, commits in flying.items() if left is None or commits <= left}
    return flying


def _left(step: PathStep) -> int | None:
    """How many groups a wait may leave in flight; None: that is not known."""
    (count,) = step.instruction.operands
    return int(count.value) if isinstance(count, Immediate) else None
