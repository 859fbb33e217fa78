"""The control-flow graph of a function (ISA "Control Flow Instructions").

A node is a run of instructions with a single entry at its top. Edges come from `bra`, `brx.idx` (with its `.branchtargets`),
`ret`, `exit` and `trap`, each with or without a guard. Calls do not end a node; the client decides what a call may do.

A graph has all paths of the text, including those that no execution takes (`splitting.py` removes some).

Not handled: a label address that is not in a `.branchtargets` list counts as an exit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import cached_property

from consan.dataclass import dataclass
from consan.instrument.control_flow import paths
from consan.instrument.control_flow.dominators import PostDominators
from consan.instrument.control_flow.labels import Named, visible
from consan.instrument.control_flow.registers import Guard, guard_of
from consan.instrument.isa import UNKNOWN, row_of
from consan.instrument.ptx import Block, Directive, Function, Instruction, Label

ENDS = frozenset({"return", "exit", "trap"})
"""Flows (`Row.flow`) after which a thread does not go on in this function."""

CONTROL = frozenset({"branch", "table", *ENDS})
"""Flows that end a node."""


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

    @property
    def may_leave(self) -> bool:
        """Whether a thread may end in this node, and not by a trap."""
        last = row_of(self.steps[-1].instruction) if self.steps else UNKNOWN
        return last.leaves or not (self.successors or last.traps)


@dataclass
class Graph:
    """The nodes of a function in text order, and its entry nodes."""

    nodes: list[BasicBlock]
    entries: tuple[int, ...] = (0,)

    def steps(self) -> Iterator[PathStep]:
        """All steps in the order of the nodes."""
        return (step for node in self.nodes for step in node.steps)

    @cached_property
    def successors(self) -> list[tuple[int, ...]]:
        """The nodes that may follow each node."""
        return [node.successors for node in self.nodes]

    @cached_property
    def predecessors(self) -> list[list[int]]:
        """The nodes that each node may follow, in order."""
        return paths.inverse([dict.fromkeys(each) for each in self.successors])

    @cached_property
    def post_dominators(self) -> PostDominators:
        """The nodes that all paths from each node pass, and which branches decide whether it is reached."""
        return PostDominators(self.successors, [number for number, node in enumerate(self.nodes) if node.may_leave])

    def behind(self, number: int) -> set[int]:
        """The nodes that a path leads to from a node."""
        return paths.behind(self.successors, (number,))

    def repeats(self, number: int) -> bool:
        """Whether a path leads from a node back to it."""
        return paths.repeats(self.successors.__getitem__, number)

    def leading_to(self, marked: Iterable[int]) -> set[int]:
        """Some nodes, and those from which a path leads to one of them."""
        return paths.reached(self.predecessors, marked)


def graph_of(function: Function) -> Graph:
    """The graph of a function that has a body."""
    return function.once(_graph)


def _graph(function: Function) -> Graph:
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


def _nodes(body: Block) -> tuple[list[BasicBlock], dict[Named, int], dict[Named, Directive]]:
    """The nodes without their edges, the node of each label, and the lists of branch targets."""
    blocks = [body, *(statement for statement in body.walk() if isinstance(statement, Block))]
    owners = {id(statement): block.start for block in blocks for statement in block.statements}
    nodes, labels, tables = [BasicBlock()], dict[Named, int](), dict[Named, Directive]()
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


def _targets(instruction: Instruction, labels: dict[Named, int], tables: dict[Named, Directive]) -> tuple[int, ...]:
    row = row_of(instruction)
    if row.ends:
        return ()
    wanted = [instruction.operands[-1].text]
    if row.is_indexed:
        table = visible(instruction.scope, wanted[0], tables)
        wanted = list(table.targets) if table else []
    found = (visible(instruction.scope, name, labels) for name in wanted)
    return tuple(dict.fromkeys(node for node in found if node is not None))
