"""What lies between two accesses of a kernel, from its control-flow graph (`flow.py`). Computed on demand for a finding.

A function is reduced to the instructions that matter: the two accesses, synchronising instructions, and calls. Accesses of one source
place count as one access (an unrolled loop has several), because findings name source places.

Decides
- which of two accesses is intended to come first (`order`): the one that the other can follow, if only one can; in a loop, the one that
  reaches the other without a barrier; else the write; of two writes, the first in the text. So a race reads the same whatever order the
  schedule produced;
- whether a store puts back, changed, what was loaded from its address (`updates`);
- what synchronises between them, and directly before and after each (`stretches`), and whether every path executes it.

Not handled; the answer is None: accesses in two functions, accesses in a called function (its callers may call it again), and
`stretches` in a kernel that calls functions that synchronise. A branch is evaluated if it depends only on the thread's index in the CTA.
Other branches count as independent of each other, so no thread need be able to take a given path of the graph. Therefore `always` is
certain, and so is that an instruction is not in a stretch; "not always" is not certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from consan.instrument.isa import MemoryAccess, Row, family_of, flow_of, has_action, lookup
from consan.instrument.isa.families import COPIES, SYNCHRONISING
from consan.instrument.isa.roles import names
from consan.instrument.loops import loop_around
from consan.instrument.passes.analyse import callee
from consan.instrument.passes.context import place_of
from consan.instrument.passes.flow import Graph, Guard, Key, graph_of, guard_of, key_of, written
from consan.instrument.ptx import Address, Function, Immediate, Instruction, Module, Operand, Register, Symbol, SymbolOffset
from consan.instrument.relations import Counted, Order, Signal, Stores, Stretches, SyncPoint, Thread, Threads, Value, is_plain
from consan.instrument.signals import signals_of
from consan.instrument.sites import Place, Site

_FAMILIES: Final = SYNCHRONISING | {"warp-collective", "cp.async.commit", "cp.async.wait"}
_GROUPS: Final = ("commit_group", "wait_group", "fence")  # actions of the bulk copies and of wgmma that synchronise
_MATTER: Final = _FAMILIES | COPIES | {"wgmma", "call"}
_ROLES: Final = ("barrier", "group-count", "mask", "parity")  # the meaning of `SyncPoint.number`
_DEPTH: Final = 12  # limit of the arithmetic that is followed for one operand
_CHAIN: Final = 64  # limit of the instructions that are followed from a stored value to a load
_BARRIERS_TRIED: Final = 8
_END: Final = 0  # the vertex that all returns lead to; 1 is the entry
_ENTRY: Final = 1
Vertices = set[int]


class TextRelations:
    """The relations of a module's sites (`relations.Relations`). The text is parsed on the first request."""

    def __init__(self, module: Callable[[], Module]) -> None:
        self._read = module
        self._flows: dict[str, _Flow | None] = {}

    def order(self, one: Site, other: Site, barriers: str) -> Order | None:
        """See `relations.Relations`."""
        found = self._located(one, other)
        if found is None or found[1] == found[2]:
            return None
        flow, first, second = found
        # Values flow from writes to reads. If the graph allows both orders, the write is intended to come first.
        reads = one.access == "read", other.access == "read"
        wanted = reads[0] if reads[0] != reads[1] else None
        if flow.are_apart(first, second):
            return None if wanted is None or flow.repeats(first | second) else Order(wanted)
        return flow.order(first, second, barriers, wanted)

    def stretches(self, first: Site, second: Site, threads: Threads) -> Stretches | None:
        """See `relations.Relations`."""
        found = self._located(first, second)
        return found[0].stretches(*found[1:], threads) if found and not found[0].calls else None

    def in_branches(self, first: Site, second: Site, threads: Threads) -> tuple[bool, bool]:
        """See `relations.Relations`."""
        found = self._located(first, second)
        return found[0].in_branches(*found[1:], threads) if found else (False, False)

    def signals(self, entry: str) -> tuple[Signal, ...]:
        """See `relations.Relations`."""
        return signals_of(self._module, entry)

    def follows(self, entry: str, line: int, later: int) -> bool | None:
        """See `relations.Relations`."""
        flow = self._flow(entry)
        return flow.follows(line, later) if flow is not None else None

    def barrier_behind(self, entry: str, line: int, later: int) -> Place | None:
        """See `relations.Relations`."""
        flow = self._flow(entry)
        return flow.barrier_behind(line, later) if flow is not None else None

    def loop(self, entry: str, *lines: int) -> Place | None:
        """See `relations.Relations`."""
        flow = self._flow(entry)
        return flow.loop(lines) if flow is not None else None

    def counted(self, barrier: Site) -> Counted | None:
        """See `relations.Relations`."""
        flow = self._flow(barrier.function)
        return flow.counted(barrier.ptx_line) if flow is not None else None

    def updates(self, write: Site) -> int:
        """See `relations.Relations`."""
        flow = self._flow(write.function)
        return flow.updates(write.ptx_line) if flow is not None else 0

    def stores(self, access: Site) -> Stores | None:
        """See `relations.Relations`."""
        flow = self._flow(access.function)
        return flow.stores(access.ptx_line) if flow is not None else None

    def variable(self, access: Site) -> str:
        """See `relations.Relations`."""
        flow = self._flow(access.function)
        return flow.variable(access.ptx_line) if flow is not None else ""

    @cached_property
    def _module(self) -> Module:
        return self._read()

    def _located(self, one: Site, other: Site) -> tuple[_Flow, Vertices, Vertices] | None:
        flow = self._flow(one.function) if one.function == other.function else None
        if flow is None:
            return None
        vertices = flow.at(one), flow.at(other)
        return (flow, *vertices) if all(vertices) else None

    def _flow(self, name: str) -> _Flow | None:
        if name not in self._flows:
            function = next((f for f in self._module.functions if f.name == name and f.body is not None), None)
            self._flows[name] = _Flow(self._module, function) if function and function.kind == "entry" else None
        return self._flows[name]


def _place(site: Site) -> Place:
    return Place(site.ptx_line, site.ptx, site.file, site.line, site.column, site.inlined)


@dataclass(frozen=True)
class _Branch:
    """The exits of a node: the guard of its final branch, the target of that branch, and the other successor (None: there is none)."""

    guard: Guard | None
    taken: tuple[int, ...]
    falls: int | None

    def targets(self, value: bool | None) -> list[int]:
        """The possible targets, given what is known of the guard's register."""
        taken, falls = self.taken or (_END,), () if self.falls is None else (self.falls,)
        if self.guard is None:
            return list(falls or taken)
        return [*(() if value is not None and value != self.guard.value else taken), *(() if value == self.guard.value else falls)]


@dataclass
class _Edges:
    """The edges that a thread can take, and their inverse. Its guards skip the instructions in `skipped` and execute those in `sure`."""

    out: list[list[int]]
    skipped: Vertices
    sure: Vertices

    @cached_property
    def into(self) -> list[list[int]]:
        """The inverse edges."""
        found: list[list[int]] = [[] for _ in self.out]
        for vertex, targets in enumerate(self.out):
            for target in targets:
                found[target].append(vertex)
        return found


@dataclass
class _Flow:
    """The control flow of one kernel. Vertices are the instructions that matter, and the entries of the graph's nodes."""

    module: Module
    function: Function
    out: list[list[int]] = field(default_factory=lambda: [[], []])
    instructions: dict[int, Instruction] = field(default_factory=dict)  # by vertex
    calls: Vertices = field(default_factory=set)  # of functions that synchronise
    branches: dict[int, _Branch] = field(default_factory=dict)  # by the last vertex of a node
    threads: dict[Thread | None, _Edges] = field(default_factory=dict)
    followed: dict[tuple[int, int], bool | None] = field(default_factory=dict)  # by lines: `follows`
    loops: dict[tuple[int, ...], Place | None] = field(default_factory=dict)  # by lines: `loop`

    def __post_init__(self) -> None:
        graph = graph_of(self.function)
        tops = self._add_nodes(graph)
        for node, (_, last) in zip(graph.nodes, tops, strict=True):
            taken = tuple(tops[target][0] for target in node.taken)
            self.branches[last] = _Branch(node.guard, taken, None if node.falls is None else tops[node.falls][0])
        self.out[_ENTRY] = [tops[entry][0] for entry in graph.entries]
        self.out = self.edges(None).out

    def _add_nodes(self, graph: Graph) -> list[tuple[int, int]]:
        """A chain of vertices for each node: its first and its last one."""
        accesses = _Syncing(self.module)
        tops = []
        for node in graph.nodes:
            top = self._vertex()
            for step in node.steps:
                if _matters(step.instruction):
                    vertex = self._vertex()
                    self.out[vertex - 1] = [vertex]
                    self.instructions[vertex] = step.instruction
                    if flow_of(step.instruction) == "call" and accesses.synchronises(step.instruction):
                        self.calls.add(vertex)
            tops.append((top, len(self.out) - 1))
        return tops

    def _vertex(self) -> int:
        self.out.append([])
        return len(self.out) - 1

    def edges(self, thread: Thread | None) -> _Edges:
        """The edges that a thread can take, as far as its index in the CTA decides its branches; None: any thread."""
        if thread not in self.threads:
            out = list(self.out)
            for last, branch in self.branches.items():
                out[last] = branch.targets(self._decided(branch.guard, thread))
            reached = _closure(out, {_ENTRY}, set()) | {_ENTRY}
            out = [targets if vertex in reached else [] for vertex, targets in enumerate(out)]
            guards = {v: (g, self._decided(g, thread)) for v, i in self.instructions.items() if (g := guard_of(i)) is not None}
            sure = {v for v in self.instructions if v not in guards or guards[v][1] == guards[v][0].value}
            skipped = {v for v, (guard, value) in guards.items() if value is not None and value != guard.value}
            self.threads[thread] = _Edges(out, skipped | (self.instructions.keys() - reached), sure)
        return self.threads[thread]

    def _decided(self, guard: Guard | None, thread: Thread | None) -> bool | None:
        value = self._value_of(guard.register, _DEPTH).of(thread) if guard and thread else None
        return None if value is None else bool(value)

    @cached_property
    def ranks(self) -> list[int]:
        """The position of each vertex in a reverse postorder: a vertex before another on some acyclic path has the lower rank."""
        done = _postorder(self.out, {_ENTRY}, set())
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
        """The synchronising instructions, grouped by source place, with their vertices."""
        found: dict[tuple[object, ...], tuple[SyncPoint, Vertices]] = {}
        for vertex, instruction in self.instructions.items():
            if (point := self._point(instruction)) is not None:
                key = (_identity(point.place), point.number, point.count)
                found.setdefault(key, (point, set()))[1].add(vertex)
        return list(found.values())

    @cached_property
    def _definitions(self) -> dict[Key, Instruction | None]:
        """The instruction that writes a register; None if there are several."""
        found: dict[Key, Instruction | None] = {}
        for instruction in self.function.instructions():
            for key in written(instruction):
                found[key] = None if key in found else instruction
        return found

    @cached_property
    def _places(self) -> dict[tuple[object, ...], Vertices]:
        """The accesses by source place."""
        found: dict[tuple[object, ...], Vertices] = {}
        for vertex, instruction in self.instructions.items():
            found.setdefault(_identity(place_of(self.module, instruction)), set()).add(vertex)
        return found

    def at(self, site: Site) -> Vertices:
        """The vertices of an access: all that belong to its source place."""
        return self._places.get(_identity(_place(site)), set())

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

    def are_apart(self, one: Vertices, other: Vertices) -> bool:
        """Whether neither can follow the other."""
        return not self._reaches(one, other, set()) and not self._reaches(other, one, set())

    def repeats(self, vertices: Vertices) -> bool:
        """Whether one of them is in a loop."""
        return any(self._reaches({vertex}, {vertex}, set()) for vertex in vertices)

    def order(self, one: Vertices, other: Vertices, barriers: str, wanted: bool | None) -> Order:
        """The order of two accesses that are not apart. `wanted`: whether to swap them if the graph allows both orders."""
        walls = self.calls | {v for v, i in self.instructions.items() if _BARRIERS[barriers](i) and i.predicate is None}
        for blocked in (set[int](), walls):
            forth, back = self._reaches(one, other, blocked), self._reaches(other, one, blocked)
            if forth != back:
                return self._ordered(one, other, swapped=back)
        return self._ordered(one, other, swapped=self._rank(other) < self._rank(one) if wanted is None else wanted)

    def _ordered(self, one: Vertices, other: Vertices, *, swapped: bool) -> Order:
        first, second = (other, one) if swapped else (one, other)
        carried = self._rank(second) < self._rank(first)
        if len(first | second) == 2:  # an unrolled loop has more vertices, and no back edge
            carried = carried and not _closure(self._onward, first, set()) & second
        return Order(swapped, carried)

    def in_branches(self, first: Vertices, second: Vertices, threads: Threads) -> tuple[bool, bool]:
        """See `relations.Relations`."""
        if not _closure(self._onward, first, set()) & second:
            return False, False
        return self._avoids(threads[1], first), self._avoids(threads[0], second)

    def _avoids(self, thread: Thread | None, access: Vertices) -> bool:
        """Whether a thread surely never executes an access."""
        edges = self.edges(thread)
        return not (_closure(edges.out, {_ENTRY}, set()) - edges.skipped) & access

    def _rank(self, access: Vertices) -> int:
        """The rank of the first vertex."""
        return min(self.ranks[vertex] for vertex in access)

    def _reaches(self, first: Vertices, second: Vertices, blocked: Vertices) -> bool:
        return bool(_closure(self.out, first, blocked) & second)

    def loop(self, lines: tuple[int, ...]) -> Place | None:
        """See `relations.Relations`."""
        if lines not in self.loops:
            self.loops[lines] = loop_around(self.module, self.function, lines)
        return self.loops[lines]

    def barrier_behind(self, line: int, later: int) -> Place | None:
        """See `relations.Relations`. Of many barriers only the first few are looked at."""
        one, other = self.on_line(line), self.on_line(later)
        if not one or not other:
            return None
        behind = _closure(self.out, one, set()) - _closure(self.edges(None).into, one, set())
        full = [v for v in behind if v in self.instructions and _is_full(self.instructions[v]) and self.instructions[v].predicate is None]
        for vertex in sorted(full)[:_BARRIERS_TRIED]:
            if not self._reaches({_ENTRY}, other, {vertex}):
                return place_of(self.module, self.instructions[vertex])
        return None

    # --- stretches ---

    def stretches(self, first: Vertices, second: Vertices, threads: Threads) -> Stretches:
        """What synchronises around two accesses."""
        both = first | second
        of_first, of_second = (self.edges(thread) for thread in threads)
        forward, backward = _closure(self.out, first, both), _closure(self.edges(None).into, second, both)
        between = forward & backward if forward & second else None
        return Stretches(
            follows=between is not None,
            repeats=self.repeats(both),
            between=() if between is None else self._stretch(self.edges(None), first, both, second, between),
            before_first=self._stretch(of_first, first, both, back=True),
            after_first=self._stretch(of_first, first, both, None, between),
            before_second=self._stretch(of_second, second, both, None, between, back=True),
            after_second=self._stretch(of_second, second, both),
        )

    def _stretch(
        self,
        edges: _Edges,
        sources: Vertices,
        both: Vertices,
        ends: Vertices | None = None,
        inside: Vertices | None = None,
        *,
        back: bool = False,
    ) -> tuple[SyncPoint, ...]:
        """The points from the sources to the ends, or back from them, in program order. A point that no path avoids is on all of them."""
        along, ends = edges.into if back else edges.out, both | {_END, _ENTRY} if ends is None else ends
        ranks = {vertex: rank for rank, vertex in enumerate(_postorder(along, sources, both))}
        points = []
        for point, vertices in self.points:
            here = {v for v in vertices - both - edges.skipped if v in ranks and (inside is None or v in inside)}
            if here:
                always = not _closure(along, sources, both | here & edges.sure) & ends
                points.append((max(ranks[vertex] for vertex in here), replace(point, always=always)))
        return tuple(point for _, point in sorted(points, key=lambda each: each[0], reverse=not back))

    # --- updates ---

    def updates(self, line: int) -> int:
        """The line of the load that the store of a PTX line puts back, changed, at the same address."""
        store = next((i for i in self.instructions.values() if place_of(self.module, i).ptx_line == line), None)
        if store is None or family_of(store) != "store" or not isinstance(address := store.operands[0], Address):
            return 0
        base = address.base
        if isinstance(base, Register) and self._definitions.get(key_of(store.scope, base.name)) is None:
            return 0  # the address may have changed since the load
        load = self._load_behind(store, address)
        return place_of(self.module, load).ptx_line if load is not None else 0

    def _load_behind(self, store: Instruction, address: Address) -> Instruction | None:
        """The load from an address from which the value of a store is computed, through registers that are written once."""
        pending, seen = [store], set[int]()
        while pending and len(seen) < _CHAIN:
            instruction = pending.pop()
            seen.add(id(instruction))
            if family_of(instruction) == "load" and instruction.operands[1] == address:
                return instruction
            sources = (self._definitions.get(key_of(instruction.scope, name)) for name in names(instruction.operands[1:]))
            pending += [] if family_of(instruction) == "load" else [each for each in sources if each is not None and id(each) not in seen]
        return None

    # --- stores to a variable ---

    def stores(self, line: int) -> Stores | None:
        """The places of the stores to the variable that the access of a PTX line touches, each once."""
        reader = next((i for i in self.instructions.values() if place_of(self.module, i).ptx_line == line), None)
        touched = next(_touched(reader, ("read", "rmw")), None) if reader is not None else None
        wanted = self._variables(touched.address, reader) if touched is not None and reader is not None else set[str]()
        if len(wanted) != 1 or self.calls or touched is None or reader is None:
            return None
        found = [(i, self._variables(each.address, i)) for i in self.instructions.values() for each in _touched(i, ("write", "rmw"))]
        stores = [i for i, variables in found if wanted & variables]
        if not stores and not all(variables for _, variables in found):
            return None
        size = touched.total_bytes or (self._value(touched.size, reader, _DEPTH).of(None) if touched.size is not None else None)
        places = {_identity(at): at for at in (place_of(self.module, i) for i in stores)}
        return Stores(tuple(places.values()), size or 0)

    def variable(self, line: int) -> str:
        """The shared variable that the access of a PTX line is computed from; empty if there are several, or none."""
        access = next((i for i in self.instructions.values() if place_of(self.module, i).ptx_line == line), None)
        touched = next(_touched(access, ("read", "write", "rmw")), None) if access is not None else None
        found = self._variables(touched.address, access) if touched is not None and access is not None else set[str]()
        return found.pop() if len(found) == 1 else ""

    def _variables(self, address: Operand | None, user: Instruction) -> set[str]:
        """The variables that an address is computed from, through registers that are written once."""
        pending, seen, found = [(address, user)], set[int](), set[str]()
        while pending and len(seen) < _CHAIN:
            operand, scope = pending.pop()
            base = operand.base if isinstance(operand, Address | SymbolOffset) else operand
            if isinstance(base, Symbol):
                found.add(base.name)
            definition = self._definitions.get(key_of(scope.scope, base.name)) if isinstance(base, Register) else None
            if definition is not None and family_of(definition) != "load" and id(definition) not in seen:
                seen.add(id(definition))
                pending += [(each, definition) for each in definition.operands[1:]]
        return found

    # --- points ---

    def _point(self, instruction: Instruction) -> SyncPoint | None:
        row = lookup(instruction.parts)
        if row is None or not _is_sync(row):
            return None
        numbered = row.family in ("barrier", "warp-barrier", "cp.async.wait", "mbarrier") or row.action == "wait_group"
        roles = dict(zip(row.roles(instruction), instruction.operands, strict=False)) if numbered else {}
        number = next((self._value(roles[role], instruction, _DEPTH) for role in _ROLES if role in roles), None)
        count = self._value(roles["count"], instruction, _DEPTH) if "count" in roles and row.family != "mbarrier" else None
        return SyncPoint(instruction.opcode, row.family, place_of(self.module, instruction), number, count)

    def counted(self, line: int) -> Counted | None:
        """See `relations.Relations`."""
        barrier = next((self.instructions[vertex] for vertex in self.on_line(line)), None)
        row = lookup(barrier.parts) if barrier is not None else None
        if barrier is None or row is None or row.family != "barrier":
            return None
        operand = dict(zip(row.roles(barrier), barrier.operands, strict=False)).get("count")
        if operand is None:
            return None
        definition = self._definitions.get(key_of(barrier.scope, operand.name)) if isinstance(operand, Register) else None
        return Counted(self._value(operand, barrier, _DEPTH), place_of(self.module, definition) if definition is not None else None)

    def _value(self, operand: Operand, instruction: Instruction, depth: int) -> Value:
        """An operand as arithmetic on the thread index, as far as its registers are written once."""
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            return Value("", constant=operand.value)
        if not isinstance(operand, Register) or not depth:
            return _UNKNOWN
        if operand.name.startswith("%tid."):
            return Value(operand.name)
        return self._value_of(key_of(instruction.scope, operand.name), depth)

    def _value_of(self, register: Key, depth: int) -> Value:
        """The value of a register, from the one instruction that writes it."""
        definition = self._definitions.get(register)
        if definition is None or definition.predicate is not None or not is_plain(definition.parts):
            return _UNKNOWN
        return Value(definition.opcode, tuple(self._value(each, definition, depth - 1) for each in definition.operands[1:]))


_UNKNOWN: Final = Value("unknown")


def _closure(edges: list[list[int]], sources: Iterable[int], blocked: Vertices) -> Vertices:
    """The vertices that are reachable from the sources. A blocked vertex is reached but not passed."""
    found: Vertices = set()
    pending = [target for vertex in sources for target in edges[vertex]]
    while pending:
        vertex = pending.pop()
        if vertex not in found:
            found.add(vertex)
            pending += () if vertex in blocked else edges[vertex]
    return found


def _postorder(edges: list[list[int]], sources: Iterable[int], blocked: Vertices) -> list[int]:
    """The reachable vertices in postorder. A blocked vertex is reached but not passed."""
    done, seen = list[int](), set(sources)
    for source in sorted(seen):
        pending = [(source, iter(edges[source]))]
        while pending:
            vertex, targets = pending[-1]
            target = next((each for each in targets if each not in seen), None)
            if target is None:
                done.append(vertex)
                pending.pop()
            else:
                seen.add(target)
                pending.append((target, iter(() if target in blocked else edges[target])))
    return done


def _identity(place: Place) -> tuple[object, ...]:
    """The key that instructions of one source place share. Without line information an instruction has its own key."""
    opcode = next((word for word in place.ptx.rstrip(";").split() if not word.startswith("@")), "")
    if not place.file:
        return place.ptx_line, opcode
    return opcode, place.file, place.line, place.column, place.inlined


def _matters(instruction: Instruction) -> bool:
    """Whether an instruction may be an access or synchronises."""
    row = lookup(instruction.parts)
    return row is not None and (bool(row.touches) or row.family in _MATTER)


def _touched(instruction: Instruction, kinds: tuple[str, ...]) -> Iterator[MemoryAccess]:
    """The accesses of an instruction to memory that may be shared."""
    row = lookup(instruction.parts)
    for access in row.accesses(instruction) if row is not None and row.touches else ():
        if access.access in kinds and access.space.startswith(("shared", "generic")):
            yield access


def _is_full(instruction: Instruction) -> bool:
    """A barrier for all threads of the CTA: `bar.sync` without a thread count."""
    row = lookup(instruction.parts)
    if row is None or row.family != "barrier" or row.action == "arrive":
        return False
    return "count" not in row.roles(instruction)


def _is_warp(instruction: Instruction) -> bool:
    operands = instruction.operands
    if family_of(instruction) != "warp-barrier":
        return _is_full(instruction)
    return isinstance(operands[0], Immediate) and int(operands[0].value) & 0xFFFFFFFF == 0xFFFFFFFF


def _is_cluster(instruction: Instruction) -> bool:
    return has_action(instruction, "cluster-barrier", "wait")


_BARRIERS: Final[dict[str, Callable[[Instruction], bool]]] = {"warp": _is_warp, "cta": _is_full, "cluster": _is_cluster}


class _Syncing:
    """The calls that can reach a function that synchronises."""

    def __init__(self, module: Module) -> None:
        self._bodies = {f.name: f for f in module.functions if f.body is not None}

    def synchronises(self, call: Instruction) -> bool:
        """Whether a call may synchronise; an indirect call may."""
        target = callee(call)
        return target is None or target in self._names

    @cached_property
    def _names(self) -> set[str]:
        found = {name for name, f in self._bodies.items() if any(_syncs(i) for i in f.instructions())}
        while True:
            more = {name for name, f in self._bodies.items() if name not in found and any(t in found for t in _callees(f))}
            if not more:
                return found
            found |= more


def _syncs(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    return row is not None and _is_sync(row)


def _is_sync(row: Row) -> bool:
    return row.family in _FAMILIES or (row.family in ("bulk", "wgmma") and row.action in _GROUPS)


def _callees(function: Function) -> Iterator[str | None]:
    return (callee(instruction) for instruction in function.instructions() if flow_of(instruction) == "call")
