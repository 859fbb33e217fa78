"""The operations in flight of a thread from one barrier of a CTA to the next ones: `cp.async`, bulk copies, and products of its warpgroup.

A copy accesses memory at some time between its issue and the wait that covers it: `wait_group N` covers the groups but the N last ones,
`wait_all` all copies (ISA "cp.async.wait_group"). Bulk copies from shared memory have groups of their own, and `wait_group.read` covers
what they read (ISA "cp.async.bulk.wait_group"). Products read their operands until `wgmma.wait_group` covers them. For each copy, the
commits behind it are counted, at least: where paths join, the smaller number holds. A guarded instruction may not execute: such a commit or
wait counts for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from consan.instrument.control_flow import Graph, PathStep
from consan.instrument.effects import Effect
from consan.instrument.effects.makes import Makes
from consan.instrument.isa import row_of
from consan.instrument.ptx import Instruction
from consan.prove.phases.counters import GROUPS, committed_by, groups_left, is_followed

Place = tuple[int, int]
"""A step: its node, and its number there."""
Flight = tuple[int, int, bool]
"""One side of a copy: the node and the number of the step that issues it, and whether it is the side that the copy writes."""
InFlight = Mapping[Flight, tuple[type[Effect] | None, int]]
"""The copies that may be in flight: what ends their groups (None: an mbarrier completes them), and the commits behind them at least."""

_NONE: InFlight = {}


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
            if self._issues and (commit := _commit_of(step.instruction)) is not Effect:
                flying = {**flying, **dict.fromkeys(((*place, False), (*place, True)), (commit, 0))}
            elif step.guard is None:
                flying = _behind(step, flying)
        return flying


def _commit_of(instruction: Instruction) -> type[Effect] | None:
    """The effect that ends the group of a copy; None: an mbarrier completes it; `Effect`: the instruction is no copy."""
    return committed_by(instruction) or (None if is_followed(instruction) else Effect)


def _joined(one: InFlight, other: InFlight) -> InFlight:
    return {
        flight: min((each[flight] for each in (one, other) if flight in each), key=lambda found: found[1]) for flight in {**one, **other}
    }


def _behind(step: PathStep, flying: InFlight) -> InFlight:
    """The copies that may be in flight behind an instruction without a guard."""
    for made in row_of(step.instruction).makes:
        if made.kind in GROUPS.values():
            flying = {flight: (commit, number + (commit is made.kind)) for flight, (commit, number) in flying.items()}
        elif made.kind in GROUPS:
            flying = {flight: found for flight, found in flying.items() if not _covers(step, made, flight, *found)}
    return flying


def _covers(step: PathStep, wait: Makes, flight: Flight, commit: type[Effect] | None, commits: int) -> bool:
    """Whether a wait covers a copy, or what it reads."""
    left = groups_left(step.instruction, wait)
    reads_only = any(words <= set(step.instruction.parts) for name, words in wait.words.items() if name == "read_only")
    written = flight[-1]
    return commit is GROUPS[wait.kind] and left is not None and commits > left and not (reads_only and written)
