"""The control flow of a kernel between two accesses: their order, the barriers behind one, what synchronises around them.

A kernel is reduced to the instructions that matter (`synchronising.py`). Accesses of one source place count as one access (an unrolled
loop has several), because findings name source places.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.between.data import DataFlow, identity
from consan.instrument.between.loops import loop_around
from consan.instrument.between.paths import END, ENTRY, Edges, NodeExits, Vertices
from consan.instrument.between.synchronising import BARRIERS, SynchronisingCalls, is_full, matters
from consan.instrument.control_flow import Graph, Guard, graph_of, guard_of
from consan.instrument.control_flow.paths import closure, postorder
from consan.instrument.isa import row_of
from consan.instrument.ptx import Address, Function, Instruction, Module
from consan.instrument.relations import Order, Stretches, SyncPoint, Thread, Threads
from consan.instrument.rewriting.context import place_of
from consan.instrument.sites import Place, Site

_BARRIERS_TRIED: Final = 8


@dataclass
class Flow:
    """The control flow of one kernel. Vertices are the instructions that matter, and the entries of the graph's nodes."""

    module: Module
    function: Function
    out: list[list[int]] = field(default_factory=lambda: [[], []])
    instructions: dict[int, Instruction] = field(default_factory=dict)  # by vertex
    calls: Vertices = field(default_factory=set)  # of functions that synchronise
    branches: dict[int, NodeExits] = field(default_factory=dict)  # by the last vertex of a node
    threads: dict[Thread | None, Edges] = field(default_factory=dict)
    followed: dict[tuple[int, int], bool | None] = field(default_factory=dict)  # by lines: `follows`
    loops: dict[tuple[int, ...], Place | None] = field(default_factory=dict)  # by lines: `loop`

    def __post_init__(self) -> None:
        self.data = DataFlow(self.module, self.function)
        graph = graph_of(self.function)
        tops = self._add_nodes(graph)
        for node, (_, last) in zip(graph.nodes, tops, strict=True):
            taken = tuple(tops[target][0] for target in node.taken)
            self.branches[last] = NodeExits(node.guard, taken, None if node.falls is None else tops[node.falls][0])
        self.out[ENTRY] = [tops[entry][0] for entry in graph.entries]
        self.out = self.edges(None).out

    def _add_nodes(self, graph: Graph) -> list[tuple[int, int]]:
        """A chain of vertices for each node: its first and its last one."""
        accesses = SynchronisingCalls(self.module)
        tops = []
        for node in graph.nodes:
            top = self._vertex()
            for step in node.steps:
                if matters(step.instruction):
                    vertex = self._vertex()
                    self.out[vertex - 1] = [vertex]
                    self.instructions[vertex] = step.instruction
                    if row_of(step.instruction).calls and accesses.synchronises(step.instruction):
                        self.calls.add(vertex)
            tops.append((top, len(self.out) - 1))
        return tops

    def _vertex(self) -> int:
        self.out.append([])
        return len(self.out) - 1

    def edges(self, thread: Thread | None) -> Edges:
        """The edges that a thread can take, as far as its index in the CTA decides its branches; None: any thread."""
        if thread not in self.threads:
            out = list(self.out)
            for last, branch in self.branches.items():
                out[last] = branch.targets(self._decided(branch.guard, thread))
            reached = closure(out, {ENTRY}, set()) | {ENTRY}
            out = [targets if vertex in reached else [] for vertex, targets in enumerate(out)]
            guards = {v: (g, self._decided(g, thread)) for v, i in self.instructions.items() if (g := guard_of(i)) is not None}
            sure = {v for v in self.instructions if v not in guards or guards[v][1] == guards[v][0].value}
            skipped = {v for v, (guard, value) in guards.items() if value is not None and value != guard.value}
            self.threads[thread] = Edges(out, skipped | (self.instructions.keys() - reached), sure)
        return self.threads[thread]

    def _decided(self, guard: Guard | None, thread: Thread | None) -> bool | None:
        value = self.data.value_of(guard.register).of(thread) if guard and thread else None
        return None if value is None else bool(value)

    @cached_property
    def ranks(self) -> list[int]:
        """The position of each vertex in a reverse postorder: a vertex before another on some acyclic path has the lower rank."""
        done = list(postorder(self.out, {ENTRY}))
        ranks = [len(self.out)] * len(self.out)
        for rank, vertex in enumerate(reversed(done)):
            ranks[vertex] = rank
        return ranks

    @cached_property
    def _onward(self) -> list[list[int]]:
        """The edges without the back edges of loops."""
        ranks = self.ranks
        return [[target for target in targets if ranks[target] > ranks[vertex]] for vertex, targets in enumerate(self.out)]

    @cached_property
    def points(self) -> list[tuple[SyncPoint, Vertices]]:
        """The synchronising instructions, grouped by source place, with their vertices. An unrolled wait may have several parities."""
        found: dict[tuple[object, ...], tuple[SyncPoint, Vertices]] = {}
        for vertex, instruction in self.instructions.items():
            if (point := self.data.point(instruction)) is not None:
                key = (identity(point.place), None if point.row.is_phase_wait else point.number, point.count)
                first, vertices = found.setdefault(key, (point, set()))
                found[key] = (first if first.number == point.number else replace(first, number=None), vertices | {vertex})
        return list(found.values())

    @cached_property
    def _places(self) -> dict[tuple[object, ...], Vertices]:
        """The accesses by source place."""
        found: dict[tuple[object, ...], Vertices] = {}
        for vertex, instruction in self.instructions.items():
            found.setdefault(identity(place_of(self.module, instruction)), set()).add(vertex)
        return found

    def at(self, site: Site) -> Vertices:
        """The vertices of an access: all that belong to its source place. In another function: the calls that reach it."""
        if site.function != self.function.name:
            calls = SynchronisingCalls(self.module)
            return {v for v, i in self.instructions.items() if row_of(i).calls and calls.reaches(i, site.function)}
        return self._places.get(identity(_place(site)), set())

    def updates(self, write: Site) -> frozenset[int]:
        """See `relations.Relations`."""
        lines = {self.instructions[vertex].line for vertex in self.at(write)}
        return frozenset(load for line in lines if (load := self.data.updates(line)))

    def checks(self, write: Site) -> frozenset[int]:
        """See `relations.Relations`."""
        lines = {self.instructions[vertex].line for vertex in self.at(write)}
        walls = self._walls("cta")  # behind a barrier a test is of what was there before it
        found = ((load, line) for line in lines for load in self.data.checks(line))
        return frozenset(load for load, line in found if self._reaches(self.on_line(load), self.on_line(line), walls))

    def combines(self, write: Site) -> bool:
        """See `relations.Relations`."""
        lines = {self.instructions[vertex].line for vertex in self.at(write)}
        return all(self.data.combines(line) for line in lines)

    def keeps_extreme(self, write: Site) -> bool:
        """See `relations.Relations`."""
        lines = {self.instructions[vertex].line for vertex in self.at(write)}
        return all(self.data.compared(line) is not None for line in lines)

    def on_line(self, line: int) -> Vertices:
        """The vertices of a PTX line."""
        return self._lines.get(line, set())

    @cached_property
    def _lines(self) -> dict[int, Vertices]:
        found: dict[int, Vertices] = {}
        for vertex, instruction in self.instructions.items():
            found.setdefault(place_of(self.module, instruction).ptx_line, set()).add(vertex)
        return found

    # --- order ---

    def follows(self, line: int, later: int) -> bool | None:
        """See `relations.Relations`."""
        if (line, later) not in self.followed:
            one, other = self.on_line(line), self.on_line(later)
            self.followed[line, later] = self._reaches(one, other, set()) if one and other else None
        return self.followed[line, later]

    def are_unordered(self, one: Vertices, other: Vertices) -> bool:
        """Whether neither can follow the other."""
        return not self._reaches(one, other, set()) and not self._reaches(other, one, set())

    def repeats(self, vertices: Vertices, barriers: str = "") -> bool:
        """Whether one of them, or one and another of them, can come twice. `barriers`: with no barrier of this kind in between."""
        walls = self._walls(barriers) if barriers else set[int]()
        return any(self._reaches({vertex}, vertices if barriers else {vertex}, walls) for vertex in vertices)

    def has_rounds(self, access: Vertices) -> bool:
        """Whether an access is in a loop, also in one that the compiler has unrolled."""
        return any(self._reaches({vertex}, access, set()) for vertex in access)

    def _walls(self, barriers: str) -> Vertices:
        return self.calls | {v for v, i in self.instructions.items() if BARRIERS[barriers](i) and i.predicate is None}

    def order(self, one: Vertices, other: Vertices, barriers: str, wanted: bool | None) -> Order:
        """The order of two accesses, where one can follow the other. `wanted`: whether to swap them if the graph allows both orders."""
        # A group of lanes has a mask of its own, which the text may not show: a barrier of some lanes decides if no other does.
        for blocked in (set[int](), self._walls(barriers), self._walls("lanes" if barriers == "warp" else barriers)):
            forth, back = self._reaches(one, other, blocked), self._reaches(other, one, blocked)
            if forth != back:
                return self._ordered(one, other, swapped=back)
        return self._ordered(one, other, swapped=self._rank(other) < self._rank(one) if wanted is None else wanted)

    def _ordered(self, one: Vertices, other: Vertices, *, swapped: bool) -> Order:
        first, second = (other, one) if swapped else (one, other)
        # In two arms of a branch neither comes before the other, and two threads execute them in one iteration.
        return Order(swapped, self._lead(first) in closure(self._onward, {self._lead(second)}, set()))

    def in_branches(self, first: Vertices, second: Vertices, threads: Threads) -> tuple[bool, bool]:
        """See `relations.Relations`."""
        if not closure(self._onward, first, set()) & second:
            return False, False
        return self._avoids(threads[1], first), self._avoids(threads[0], second)

    def _avoids(self, thread: Thread | None, access: Vertices) -> bool:
        """Whether a thread surely never executes an access."""
        edges = self.edges(thread)
        return not (closure(edges.out, {ENTRY}, set()) - edges.skipped) & access

    def _lead(self, access: Vertices) -> int:
        """The first vertex: an unrolled loop has several."""
        return min(access, key=lambda vertex: self.ranks[vertex])

    def _rank(self, access: Vertices) -> int:
        return self.ranks[self._lead(access)]

    def _reaches(self, first: Vertices, second: Vertices, blocked: Vertices) -> bool:
        return bool(closure(self.out, first, blocked) & second)

    def loop(self, lines: tuple[int, ...]) -> Place | None:
        """See `relations.Relations`."""
        if lines not in self.loops:
            self.loops[lines] = loop_around(self.module, self.function, lines)
        return self.loops[lines]

    def awaited_count(self, first: Vertices, second: Vertices) -> tuple[SyncPoint, SyncPoint] | None:
        """See `relations.Relations`."""
        edges = self.edges((0, 0, 0))
        between = closure(edges.out, first, second) & closure(edges.into, second, first)
        named = [(vertex, *self._counted(vertex)) for vertex in sorted(between, key=lambda vertex: self.ranks[vertex])]
        for arrival, counter, adds in named:
            for wait, other, _ in named if adds and counter is not None else ():
                polls = wait != arrival and other == counter and bool(closure(edges.out, {wait}, first | second | {arrival}) & {wait})
                if polls and not closure(edges.out, first, {wait}) & second and not closure(edges.out, first, {arrival}) & {wait}:
                    return self._point(arrival), self._point(wait)
        return None

    def _counted(self, vertex: int) -> tuple[object, bool]:
        """The place of a strong access, and whether it adds to a counter there."""
        instruction = self.instructions.get(vertex)
        row = row_of(instruction) if instruction is not None else None
        if instruction is None or row is None or not (row.is_update or (row.is_load and row.describe(instruction).is_strong)):
            return None, False
        address = next((each for each in instruction.operands if isinstance(each, Address)), None)
        place = None if address is None or address.index is not None else (self.data.origin(instruction, address.base.text), address.offset)
        return place, row.is_update and "op" in row.modifiers(instruction.parts)

    def _point(self, vertex: int) -> SyncPoint:
        return SyncPoint(self.instructions[vertex].opcode, place_of(self.module, self.instructions[vertex]))

    def barrier_behind(self, line: int, later: int) -> Place | None:
        """See `relations.Relations`. If there are many barriers, only the first few are looked at."""
        one, other = self.on_line(line), self.on_line(later)
        if not one or not other:
            return None
        behind = closure(self.out, one, set()) - closure(self.edges(None).into, one, set())
        full = [v for v in behind if v in self.instructions and is_full(self.instructions[v]) and self.instructions[v].predicate is None]
        for vertex in sorted(full)[:_BARRIERS_TRIED]:
            if not self._reaches({ENTRY}, other, {vertex}):
                return place_of(self.module, self.instructions[vertex])
        return None

    # --- stretches ---

    def stretches(self, first: Vertices, second: Vertices, threads: Threads) -> Stretches:
        """The synchronisation around two accesses."""
        both = first | second
        of_first, of_second = (self.edges(thread) for thread in threads)
        between, own, other = (self._between(edges, first, second) for edges in (self.edges(None), of_first, of_second))
        return Stretches(
            follows=between is not None,
            repeats=self.repeats(both) or self._is_unrolled(first) != self._is_unrolled(second),
            between=() if between is None else self._stretch(self.edges(None), first, both, second, between),
            before_first=self._stretch(of_first, first, both, back=True),
            after_first=self._stretch(of_first, first, both, None, between if own is None else own),
            before_second=self._stretch(of_second, second, both, None, between if other is None else other, back=True),
            after_second=self._stretch(of_second, second, both),
        )

    @staticmethod
    def _between(edges: Edges, first: Vertices, second: Vertices) -> Vertices | None:
        """The vertices on paths from (1) to (2) that pass neither; None if there is no such path."""
        forward, backward = closure(edges.out, first, first | second), closure(edges.into, second, first | second)
        return forward & backward if forward & second else None

    def _is_unrolled(self, access: Vertices) -> bool:
        """Whether an access has copies with a barrier of the CTA between them: an unrolled loop, and not one statement."""
        barriers = self._walls("cta")
        return any(self._reaches({each}, access, set()) and not self._reaches({each}, access, barriers) for each in access)

    def _stretch(
        self,
        edges: Edges,
        sources: Vertices,
        both: Vertices,
        ends: Vertices | None = None,
        inside: Vertices | None = None,
        *,
        back: bool = False,
    ) -> tuple[SyncPoint, ...]:
        """The points from the sources to the ends, or back from them, in program order. A point that no path avoids is on all of them."""
        along, ends = edges.into if back else edges.out, both | {END, ENTRY} if ends is None else ends
        sources = self._outermost(along, sources, both)
        ranks = {vertex: rank for rank, vertex in enumerate(postorder(along, sorted(sources), both))}
        points = []
        for point, vertices in self.points:
            here = {v for v in vertices - both - edges.skipped if v in ranks and (inside is None or v in inside)}
            if here:
                always = not closure(along, sources, both | here & edges.sure) & ends
                points.append((max(ranks[vertex] for vertex in here), replace(point, always=always)))
        return tuple(point for _, point in sorted(points, key=lambda each: each[0], reverse=not back))

    def _outermost(self, along: list[list[int]], access: Vertices, both: Vertices) -> Vertices:
        """An access without the instructions from which each path comes to another one of it before it synchronises (`s[i] + s[j]`)."""
        stops = set[int]().union(both, *(vertices for _, vertices in self.points))
        ends = {vertex: closure(along, {vertex}, stops) & (stops | {END, ENTRY}) for vertex in access}
        return {vertex for vertex, reached in ends.items() if not reached or reached - access} or access


def _place(site: Site) -> Place:
    return Place(site.ptx_line, site.ptx, site.file, site.line, site.column, site.inlined)
