"""Which instructions need converged lanes, and where a lane is past such an instruction (R-BAR1; ISA ".aligned", ".sync").

A point is such an instruction. Its join is the first place on all paths from the point with no path back: a lane at the join will not reach
the point any more. A point on every path through the kernel needs no join.
After an unguarded point the lanes are converged up to the next label, branch or call, so later instructions there are no separate points.

The text of one function decides. Not handled: joins in device functions, which a thread may enter again, and joins behind their calls;
more than 32 joins in a kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from consan.instrument.isa import lookup
from consan.instrument.passes.flow import Graph, Node, graph_of
from consan.instrument.ptx import Function, Immediate, Instruction, Operand

_MASKED = frozenset({"shfl", "vote", "match", "redux", "elect"})
_MATRIX = frozenset({"mma", "ldmatrix", "stmatrix", "movmatrix", "wmma"})
_EFFECTS = frozenset(
    {"st", "atom", "red", "call", "bar", "barrier", "cp", "mbarrier", "multimem", "wgmma", "stmatrix", "tcgen05", "wmma", "sust"}
)
_ALL = 0xFFFFFFFF
MOST_JOINS = 32


@dataclass(frozen=True)
class Members:
    """The participants: the operand with the mask, or None for the whole warp. `living`: none of them may have exited."""

    mask: Operand | None = None
    whole: bool = False

    @property
    def is_warp(self) -> bool:
        """Whether they are all lanes of the warp."""
        return self.mask is None or (isinstance(self.mask, Immediate) and int(self.mask.value) & _ALL == _ALL)


@dataclass
class Point:
    """An instruction that its members must reach together, and the number of its join (0: none)."""

    instruction: Instruction
    members: Members
    join: int = 0


@dataclass(frozen=True)
class Join:
    """The place at which a lane is past a point: before an instruction, or after it."""

    instruction: Instruction
    after: bool
    number: int
    shown: Instruction  # shown in the report: the first access or wait there


def members_of(instruction: Instruction) -> Members | None:
    """The members that must reach an instruction together; None for an instruction that each thread executes by itself."""
    parts = instruction.parts
    if parts[0] == "bar" and parts[1:2] == ("warp",):
        return Members(instruction.operands[0])
    if "aligned" in parts or (parts[0] == "bar" and parts[1:2] != ("warp",)):
        return Members(whole=parts[0] in _MATRIX)
    if parts[0] in _MASKED and "sync" in parts and instruction.operands:
        return Members(instruction.operands[-1])
    return None


def find_points(function: Function) -> tuple[list[Point], list[Join]]:
    """The points of a function in text order, and their joins."""
    graph = graph_of(function)
    found = [(number, index, point) for number, node in enumerate(graph.nodes) for index, point in _points(node)]
    joins = _Joins(graph) if function.kind == "entry" and found else None
    for number, index, point in found:
        if joins is not None:
            point.join = joins.number(number, index, point)
    return [point for _, _, point in found], list(joins.found.values()) if joins else []


def _points(node: Node) -> Iterator[tuple[int, Point]]:
    """The points of a run of instructions. The first one that all lanes reach makes the later ones unnecessary."""
    together = False
    for index, step in enumerate(node.steps):
        instruction = step.instruction
        members = members_of(instruction)
        if instruction.parts[0] == "call":
            together = False
        if members is None or (together and step.guard is None):
            continue
        yield index, Point(instruction, members)
        together = together or (step.guard is None and members.is_warp)


class _Joins:
    """The joins of one kernel's points."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.found: dict[tuple[int, int], Join] = {}
        self.after = _post_dominators(graph)
        self.cycle = _cycles(graph)
        self.sizes = Counter(self.cycle)
        self.effects = _effects(graph)
        self.always = self.after[graph.entries[0]]

    def number(self, node: int, index: int, point: Point) -> int:
        """The number of a point's join; 0 without one."""
        place = self._place(node, index, point)
        if place is None:
            return 0
        if place not in self.found:
            where, position = place
            steps = self.graph.nodes[where].steps
            if len(self.found) == MOST_JOINS:
                return 0
            first = steps[min(position, len(steps) - 1)].instruction
            shown = next((s.instruction for s in steps[position:] if _is_shown(s.instruction)), first)
            self.found[place] = Join(steps[max(position - 1, 0)].instruction, position > 0, len(self.found) + 1, shown)
        return self.found[place].number

    def _place(self, node: int, index: int, point: Point) -> tuple[int, int] | None:
        """A node, and the number of its steps before the join."""
        guarded = point.instruction.predicate is not None
        if not guarded and self.always >> node & 1 and not self._repeats(node):
            return None
        if guarded and not self._repeats(node):
            return node, index + 1
        join = self._first_after(node)
        if join is None or not self.graph.nodes[join].steps:
            return None
        # Lanes that branch from here directly to the exit do not participate: the point does not wait for them. If nothing follows the
        # point either, its only purpose is to hold those lanes. Matrix instructions allow no exited lanes.
        held = point.members.whole or self.effects[join] or not self._effect_follows(node, index)
        return (join, 0) if held else None

    def _effect_follows(self, node: int, index: int) -> bool:
        rest = self.graph.nodes[node].steps[index + 1 :]
        return any(_has_effect(s.instruction) for s in rest) or any(self.effects[n] for n in self.graph.nodes[node].successors)

    def _repeats(self, node: int) -> bool:
        return self.sizes[self.cycle[node]] > 1 or node in self.graph.nodes[node].successors

    def _first_after(self, node: int) -> int | None:
        """The nearest post-dominator with no path back."""
        strict = self.after[node] & ~(1 << node)
        outside = [n for n in _bits(strict) if self.cycle[n] != self.cycle[node]]
        return max(outside, key=lambda n: self.after[n].bit_count(), default=None)


def _has_effect(instruction: Instruction) -> bool:
    return instruction.parts[0] in _EFFECTS


def _is_shown(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    return row is not None and instruction.loc is not None and (bool(row.touches) or _has_effect(instruction))


def _effects(graph: Graph) -> list[bool]:
    """For each node: whether it, or a node reachable from it, has effects that other threads can observe."""
    found = [any(_has_effect(step.instruction) for step in node.steps) for node in graph.nodes]
    before = _predecessors(graph)
    pending = [number for number, effect in enumerate(found) if effect]
    while pending:
        for number in before[pending.pop()]:
            if not found[number]:
                found[number] = True
                pending.append(number)
    return found


def _predecessors(graph: Graph) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in graph.nodes]
    for number, node in enumerate(graph.nodes):
        for successor in node.successors:
            before[successor].append(number)
    return before


def _post_dominators(graph: Graph) -> list[int]:
    """For each node: the set of nodes on all its paths to the exit, as bits. Paths into a trap do not count."""
    everything = (1 << len(graph.nodes)) - 1
    live = _reaches_exit(graph)
    after = [everything] * len(graph.nodes)
    before = _predecessors(graph)
    pending = [n for n in range(len(graph.nodes)) if live[n]]
    queued = set(pending)
    while pending:
        number = pending.pop()
        queued.discard(number)
        common = everything
        if _is_exit(graph.nodes[number]):
            common = 0
        for successor in graph.nodes[number].successors:
            common &= after[successor] if live[successor] else everything
        common |= 1 << number
        if common != after[number]:
            after[number] = common
            fresh = [n for n in before[number] if live[n] and n not in queued]
            pending += fresh
            queued.update(fresh)
    return after


def _is_exit(node: Node) -> bool:
    """Whether a thread may exit in this node."""
    last = node.steps[-1].instruction.parts[0] if node.steps else ""
    return last in ("ret", "exit") or not (node.successors or last == "trap")


def _reaches_exit(graph: Graph) -> list[bool]:
    found = [_is_exit(node) for node in graph.nodes]
    before = _predecessors(graph)
    pending = [number for number, is_exit in enumerate(found) if is_exit]
    while pending:
        for number in before[pending.pop()]:
            if not found[number]:
                found[number] = True
                pending.append(number)
    return found


def _bits(value: int) -> Iterator[int]:
    while value:
        lowest = value & -value
        yield lowest.bit_length() - 1
        value ^= lowest


def _cycles(graph: Graph) -> list[int]:
    """For each node: a number shared by its strongly connected component (Kosaraju's algorithm)."""
    after, before = [node.successors for node in graph.nodes], _predecessors(graph)
    seen: set[int] = set()
    order = [number for start in range(len(graph.nodes)) for number in _visit(start, after, seen)]
    component = [0] * len(graph.nodes)
    seen.clear()
    for start in reversed(order):
        for member in _visit(start, before, seen):
            component[member] = start
    return component


def _visit(start: int, edges: Sequence[Sequence[int]], seen: set[int]) -> Iterator[int]:
    """Reachable nodes that were not seen yet, in postorder."""
    if start in seen:
        return
    seen.add(start)
    path = [(start, iter(edges[start]))]
    while path:
        number, rest = path[-1]
        following = next((n for n in rest if n not in seen), None)
        if following is None:
            path.pop()
            yield number
        else:
            seen.add(following)
            path.append((following, iter(edges[following])))
