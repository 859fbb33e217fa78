"""Which instructions lanes of a warp must reach together, and at which places a lane has bypassed one (ISA ".aligned", ".sync").

A point is such an instruction. Its join is the first place that all paths from the point lead to and from which no path leads back:
a lane at the join can no longer reach the point. A point that every path through the kernel takes needs no join.
A lane that takes another way around the nearest join reaches a later one, so a point may have several joins.
After an unguarded point, up to the next label, branch or call, the lanes are together, so an instruction there is no point of its own.

Decides from the text of one function. A point is `open` if only a later point can show that a lane has bypassed it: in a device
function, which a thread may enter again, and in a kernel that needs more than 32 joins. The report counts these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from consan.dataclass import dataclass
from consan.instrument.control_flow import BasicBlock, Graph, PathStep, graph_of
from consan.instrument.control_flow.paths import closure, components
from consan.instrument.isa import lookup, row_of, shuffles
from consan.instrument.ptx import Function, Immediate, Instruction, Operand

_ALL = 0xFFFFFFFF
MOST_JOINS = 32


@dataclass(frozen=True)
class Members:
    """Which lanes take part: `mask` is the operand, or None for the whole warp. `whole`: no lane may have exited."""

    mask: Operand | None = None
    whole: bool = False

    @property
    def is_warp(self) -> bool:
        """Whether they are all lanes of the warp."""
        return self.mask is None or (isinstance(self.mask, Immediate) and int(self.mask.value) & _ALL == _ALL)


@dataclass
class Point:
    """An instruction that its members must reach together, and the number of its joins (0: none)."""

    instruction: Instruction
    members: Members
    join: int = 0
    open: bool = False
    certain: bool = False  # every lane of the kernel reaches it exactly once
    segment: int = 0  # how many points come before it at which all lanes of the warp are together: those of two segments never meet
    shuffles: bool = False  # it is a shuffle, or one comes before the next point: there lanes take values from each other


@dataclass
class Join:
    """A place, before or after an instruction, from which a lane can no longer reach some points.

    `called`: the number of a function instead, whose call is over (call_joins.py).
    """

    instruction: Instruction
    after: bool
    shown: Instruction  # the instruction that a report names: the first access or wait there
    passes: int = 0  # bit n - 1: points whose join number is n
    called: int = 0


def members_of(instruction: Instruction) -> Members | None:
    """The threads that must reach an instruction together; None for one that each thread executes by itself."""
    row = lookup(instruction.parts)
    if row is None:
        return None
    if row.is_warp_barrier:
        return Members(instruction.operands[0])
    if row.is_aligned(instruction.parts):
        return Members(whole=row.is_of_matrices)
    return Members(instruction.operands[-1]) if row.collective and instruction.operands else None


def find_points(function: Function) -> tuple[list[Point], list[Join]]:
    """The points of a function in the order of its text, and their joins."""
    graph = graph_of(function)
    found = [(number, index, point) for number, node in enumerate(graph.nodes) for index, point in _points(node)]
    if function.kind != "entry":
        return [replace(point, open=True) for _, _, point in found], []
    joins = _Joins(graph) if found else None
    for number, index, point in found:
        if joins is not None:
            joins.join(number, index, point)
    _number_segments(graph, found)
    return [point for _, _, point in found], list(joins.found.values()) if joins else []


def _number_segments(graph: Graph, found: Sequence[tuple[int, int, Point]]) -> None:
    """Lanes may meet at two instructions with one opcode and one mask: a point that has such another one does not keep them together."""
    others = {point.instruction.opcode for _, _, point in found if not point.certain}
    if not others or any(row_of(step.instruction).calls for node in graph.nodes for step in node.steps):
        return
    for node, at, certain in found:
        if not (certain.certain and certain.members.is_warp) or certain.instruction.opcode in others:
            continue
        behind = graph.behind(node)
        for other, index, point in found:
            point.segment += other in behind or (other == node and index > at)


def may_be_bypassed(function: Function) -> bool:
    """Whether a thread can run a function and not come to one of its points."""
    graph = graph_of(function)
    found = [(number, point) for number, node in enumerate(graph.nodes) for _, point in _points(node)]
    always = graph.post_dominators.sets[graph.entries[0]] if found else 0
    return any(point.instruction.predicate is not None or not always >> number & 1 for number, point in found)


def _points(node: BasicBlock) -> Iterator[tuple[int, Point]]:
    """The points of a run of instructions, without those after an unguarded point of the whole warp: there the lanes are still together.

    Those that come to a barrier are together, too, but some may have exited before. A mask of fewer lanes is a point once all the same: it
    may lack a lane that executes it.
    """
    together = complete = False
    last = None
    seen = set[str]()  # masks of unguarded points
    for index, step in enumerate(node.steps):
        instruction = step.instruction
        members = members_of(instruction)
        if row_of(instruction).calls:
            together = complete = False
        if members is None:
            continue
        name = members.mask.text if members.mask is not None else ""
        if step.guard is None and (complete if members.whole else together) and (members.is_warp or name in seen):
            if last is not None:
                last.shuffles |= bool(shuffles(instruction))
            continue
        last = Point(instruction, members, shuffles=bool(shuffles(instruction)))
        yield index, last
        if step.guard is None:
            seen.add(name)
        if step.guard is None and members.is_warp:
            together, complete = True, complete or members.whole


class _Joins:
    """The joins of one kernel's points."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.found: dict[tuple[int, int], Join] = {}  # by place
        self.numbers: dict[tuple[tuple[int, int], ...], int] = {}  # the places of a point's joins -> their number
        self.around: dict[frozenset[int], int] = {}
        self.after = graph.post_dominators.sets
        self.cycle = components(graph.successors, graph.predecessors)
        self.sizes = Counter(self.cycle)
        self.effects, self.works = _leading_to(graph, _has_effect), leading_to_work(graph)
        self.always = self.after[graph.entries[0]]

    def join(self, node: int, index: int, point: Point) -> None:
        """Find the joins of a point, and number them."""
        guarded = point.instruction.predicate is not None
        point.certain = not guarded and bool(self.always >> node & 1) and not self._repeats(node)
        places = () if point.certain else tuple(self._places(node, index, point))
        if not places:
            return
        if places not in self.numbers and len(self.numbers) == MOST_JOINS:
            point.open = True
            return
        point.join = self.numbers.setdefault(places, len(self.numbers) + 1)
        for where, position in places:
            self._at(where, position).passes |= 1 << (point.join - 1)

    def _at(self, node: int, position: int) -> Join:
        """The join at a place."""
        steps = self.graph.nodes[node].steps
        first = steps[min(position, len(steps) - 1)].instruction
        shown = shown_from(steps[position:]) if position < len(steps) else first
        made = Join(steps[max(position - 1, 0)].instruction, position > 0, shown)
        return self.found.setdefault((node, position), made)

    def _places(self, node: int, index: int, point: Point) -> Iterator[tuple[int, int]]:
        """The nodes of a point's joins, the nearest first, and how many steps of the node come before the join.

        These are the nearest join, and each later one that a lane can reach without passing an earlier join.
        """
        passed = list[int]()
        if point.instruction.predicate is not None and not self._repeats(node):
            passed.append(node)
            yield node, index + 1
        for join in self._after_outside(node):
            if passed and not self._reached_around(frozenset(passed)) >> join & 1:
                continue
            passed.append(join)
            # The point does not wait for lanes that only exit from here on. They are checked all the same if nothing follows the
            # point (its only use is then to hold these lanes), and for matrix instructions, for which no lane may have exited.
            held = point.members.whole or self.works[join] or not self._effect_follows(node, index)
            if held and self.graph.nodes[join].steps:
                yield join, 0

    def _reached_around(self, passed: frozenset[int]) -> int:
        """The nodes that a thread can come to without taking some others, as bits."""
        if passed not in self.around:
            entry, edges = self.graph.entries[0], self.graph.successors
            self.around[passed] = sum(1 << number for number in {entry} | closure(edges, set() if entry in passed else {entry}, passed))
        return self.around[passed]

    def _effect_follows(self, node: int, index: int) -> bool:
        rest = self.graph.nodes[node].steps[index + 1 :]
        return any(_has_effect(s.instruction) for s in rest) or any(self.effects[n] for n in self.graph.nodes[node].successors)

    def _repeats(self, node: int) -> bool:
        return self.sizes[self.cycle[node]] > 1 or node in self.graph.nodes[node].successors

    def _after_outside(self, node: int) -> list[int]:
        """The post-dominators that do not lead back, the nearest first."""
        strict = self.after[node] & ~(1 << node)
        outside = [n for n in _bits(strict) if self.cycle[n] != self.cycle[node]]
        return sorted(outside, key=lambda n: self.after[n].bit_count(), reverse=True)


def _has_effect(instruction: Instruction) -> bool:
    return row_of(instruction).acts


def works(instruction: Instruction) -> bool:
    """Whether an instruction has an effect, or computes with other lanes."""
    row = row_of(instruction)
    return row.acts or row.is_of_matrices or row.collective


def _is_shown(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    return row is not None and instruction.loc is not None and (bool(row.touches) or _has_effect(instruction))


def shown_from(steps: Sequence[PathStep]) -> Instruction:
    """The instruction that a report names for a place: the first access or wait from there on, or else the first instruction."""
    return next((step.instruction for step in steps if _is_shown(step.instruction)), steps[0].instruction)


def leading_to_work(graph: Graph) -> list[bool]:
    """For each node, whether it or something that it leads to has an effect, or computes with other lanes."""
    return _leading_to(graph, works)


def _leading_to(graph: Graph, wanted: Callable[[Instruction], bool]) -> list[bool]:
    """For each node, whether it or something that it leads to has an instruction of a kind."""
    found = graph.leading_to(number for number, node in enumerate(graph.nodes) if any(wanted(step.instruction) for step in node.steps))
    return [number in found for number in range(len(graph.nodes))]


def _bits(value: int) -> Iterator[int]:
    while value:
        lowest = value & -value
        yield lowest.bit_length() - 1
        value ^= lowest
