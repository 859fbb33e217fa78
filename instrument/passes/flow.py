"""The control-flow graph of a function (ISA "Control Flow Instructions").

A node is a run of instructions with a single entry at its top. Edges come from `bra`, `brx.idx` (with its `.branchtargets`),
`ret`, `exit` and `trap`, each with or without a guard. Labels are resolved by scope, because inline assembly has its own scopes.
Calls do not end a node; the client decides what a call may do.

A graph has all paths of the text, including those that no execution takes. `split` removes some of them: it doubles the graph by the
value of one predicate register, so that all instructions guarded by that register agree until the register is written again.

Not handled: predicates that are computed from each other (`not.pred`, or the same comparison twice) count as independent,
and a label address that is not in a `.branchtargets` list counts as an exit.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from consan.instrument.isa import destinations, row_of, sources
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Block, Directive, Function, Instruction, Label

_T = TypeVar("_T")
ENDS = frozenset({"return", "exit", "trap"})
"""Flows (`Row.flow`) after which a thread does not go on in this function."""

CONTROL = frozenset({"branch", "table", *ENDS})
"""Flows that end a node."""

Key = tuple[int, str]
"""A register: the start of the block that declares it, and its name."""


@dataclass(frozen=True)
class Guard:
    """The guard of an instruction: it executes if the register has the value."""

    register: Key
    value: bool


@dataclass(frozen=True)
class PathStep:
    """One instruction of a path. With a guard it may be skipped."""

    instruction: Instruction
    guard: Guard | None


@dataclass
class BasicBlock:
    """A run of steps. `taken`: targets of the branch that ends it; `falls`: the successor if it does not branch."""

    steps: list[PathStep] = field(default_factory=list)
    guard: Guard | None = None
    taken: tuple[int, ...] = ()
    falls: int | None = None

    @property
    def successors(self) -> tuple[int, ...]:
        """All possible next nodes."""
        return self.taken if self.falls is None else (*self.taken, self.falls)


@dataclass
class Graph:
    """The nodes of a function in text order, and its entry nodes."""

    nodes: list[BasicBlock]
    entries: tuple[int, ...] = (0,)

    def steps(self) -> Iterator[PathStep]:
        """All steps in the order of the nodes."""
        return (step for node in self.nodes for step in node.steps)

    def successors(self) -> list[tuple[int, ...]]:
        """The nodes that may follow each node."""
        return [node.successors for node in self.nodes]

    def predecessors(self) -> list[list[int]]:
        """The nodes that each node may follow."""
        before: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            for each in node.successors:
                before[each].append(number)
        return before

    def behind(self, number: int) -> set[int]:
        """The nodes that a path leads to from a node."""
        return reached(self.successors(), self.nodes[number].successors)

    def repeats(self, number: int) -> bool:
        """Whether a path leads from a node back to it."""
        pending, seen = list(self.nodes[number].successors), set[int]()
        while pending:
            node = pending.pop()
            if node == number:
                return True
            if node not in seen:
                seen.add(node)
                pending += self.nodes[node].successors
        return False


def reached(edges: Sequence[Iterable[int]], starts: Iterable[int], within: Collection[int] | None = None) -> set[int]:
    """Some nodes, and those that paths lead to from them. `edges`: of each node. `within`: the paths stay among these nodes."""
    pending, seen = list(starts), set[int]()
    while pending:
        node = pending.pop()
        if node not in seen and (within is None or node in within):
            seen.add(node)
            pending += edges[node]
    return seen


def key_of(scope: Block, name: str) -> Key:
    """The register that a name denotes in a scope. Parameters in registers belong to the whole function."""
    found = scope.lookup(name)
    return (found[1].start if found else -1, name)


def graph_of(function: Function) -> Graph:
    """The graph of a function that has a body."""
    assert function.body is not None
    nodes, labels, tables = _nodes(function.body)
    for number, node in enumerate(nodes):
        following = number + 1 if number + 1 < len(nodes) else None
        last = node.steps[-1] if node.steps else None
        if last is None or not row_of(last.instruction).turns:
            node.falls = following
            continue
        node.guard, node.taken = last.guard, _targets(last.instruction, labels, tables)
        node.falls = following if node.guard else None
    return Graph(nodes)


def _nodes(body: Block) -> tuple[list[BasicBlock], dict[Key, int], dict[Key, Directive]]:
    """The nodes without their edges, the node of each label, and the lists of branch targets."""
    blocks = [body, *(statement for statement in body.walk() if isinstance(statement, Block))]
    owners = {id(statement): block.start for block in blocks for statement in block.statements}
    nodes, labels, tables = [BasicBlock()], dict[Key, int](), dict[Key, Directive]()
    for statement in body.walk():
        if isinstance(statement, Label):
            if nodes[-1].steps:
                nodes.append(BasicBlock())
            labels[owners[id(statement)], statement.name] = len(nodes) - 1
        elif isinstance(statement, Directive) and statement.label:
            tables[owners[id(statement)], statement.label] = statement
        elif isinstance(statement, Instruction):
            nodes[-1].steps.append(PathStep(statement, guard_of(statement)))
            if row_of(statement).turns:
                nodes.append(BasicBlock())
    return nodes, labels, tables


def guard_of(instruction: Instruction) -> Guard | None:
    """The guard of an instruction; None without one."""
    predicate = instruction.predicate
    return Guard(key_of(instruction.scope, predicate.register), not predicate.negated) if predicate else None


def _targets(instruction: Instruction, labels: dict[Key, int], tables: dict[Key, Directive]) -> tuple[int, ...]:
    row = row_of(instruction)
    if row.ends:
        return ()
    wanted = [instruction.operands[-1].text]
    if row.is_indexed:
        table = _visible(instruction.scope, wanted[0], tables)
        wanted = list(table.targets) if table else []
    found = (_visible(instruction.scope, name, labels) for name in wanted)
    return tuple(dict.fromkeys(node for node in found if node is not None))


def _visible(scope: Block | None, name: str, table: dict[Key, _T]) -> _T | None:
    while scope is not None:
        if (scope.start, name) in table:
            return table[scope.start, name]
        scope = scope.parent
    return None


def repeated_guards(graph: Graph) -> list[Key]:
    """The predicate registers that guard more than one instruction, which `split` can distinguish."""
    counts: dict[Key, int] = {}
    for step in graph.steps():
        if step.guard:
            counts[step.guard.register] = counts.get(step.guard.register, 0) + 1
    return [key for key, count in counts.items() if count > 1]


def written(instruction: Instruction) -> tuple[Key, ...]:
    """The registers that an instruction writes. Without a row in the opcode table: the first operand."""
    return instruction.once(_written)


def _written(instruction: Instruction) -> tuple[Key, ...]:
    try:
        found: Collection[str] = destinations(instruction)
    except (LookupError, ValueError):
        found = tuple(names(instruction.operands[:1]))
    return tuple(key_of(instruction.scope, name) for name in found)


def read(instruction: Instruction) -> tuple[str, ...]:
    """The names of the registers that an instruction reads; none without a row in the opcode table."""
    return instruction.once(_read)


def _read(instruction: Instruction) -> tuple[str, ...]:
    try:
        return tuple(sources(instruction))
    except (LookupError, ValueError):
        return ()


def definitions(function: Function) -> dict[Key, list[Instruction]]:
    """The instructions that write each register of a function."""
    found: dict[Key, list[Instruction]] = {}
    for instruction in function.instructions():
        for key in written(instruction):
            found.setdefault(key, []).append(instruction)
    return found


def split(graph: Graph, register: Key, writers: Collection[int]) -> Graph:
    """The graph, doubled by the value of a predicate register. `writers`: ids of the instructions that write it."""
    pieces = [list(_pieces(node, writers)) for node in graph.nodes]
    starts = [2 * total for total in itertools.accumulate(map(len, pieces), initial=0)]
    nodes: list[BasicBlock] = []
    for node, parts, start in zip(graph.nodes, pieces, starts, strict=False):
        for index, steps in enumerate(parts, 1):
            after = start + 2 * index
            for value in (False, True):
                kept = list(_decided(steps, register, value))
                if index < len(parts):
                    nodes.append(BasicBlock(kept, taken=(after, after + 1)))
                else:
                    nodes.append(_branch(node, Guard(register, value), kept, starts))
    return Graph(nodes, tuple(starts[entry] + value for entry in graph.entries for value in (0, 1)))


def _branch(node: BasicBlock, known: Guard, steps: list[PathStep], starts: list[int]) -> BasicBlock:
    """The end of a node for a known predicate value, with the remaining edges."""
    decided = node.guard is not None and node.guard.register == known.register
    jumps, stays = not decided or node.guard == known, not decided or node.guard != known
    return BasicBlock(
        steps,
        None if decided else node.guard,
        tuple(starts[target] + known.value for target in node.taken) if jumps else (),
        starts[node.falls] + known.value if stays and node.falls is not None else None,
    )


def _decided(steps: list[PathStep], register: Key, value: bool) -> Iterator[PathStep]:
    """The steps that execute for a given value of the predicate."""
    for step in steps:
        if step.guard is None or step.guard.register != register:
            yield step
        elif step.guard.value == value:
            yield PathStep(step.instruction, None)


def _pieces(node: BasicBlock, writers: Collection[int]) -> Iterator[list[PathStep]]:
    """The steps of a node, cut after each write."""
    piece: list[PathStep] = []
    for step in node.steps:
        piece.append(step)
        if id(step.instruction) in writers:
            yield piece
            piece = []
    yield piece
