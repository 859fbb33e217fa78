"""Stores the events of one function: its blocks, their words, and the text that stores them.

A block of the log ends where control may diverge (a label, a branch, a call, an exit), and after an instruction that may wait (a barrier, a
warp-synchronous instruction). Words are stored before the instruction that they describe, because it may overwrite its own operands.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import field

from consan.dataclass import dataclass
from consan.instrument.control_flow import Graph, guard_of
from consan.instrument.effects import WordValue
from consan.instrument.isa import family_of
from consan.instrument.ptx import Block, Instruction, Operand
from consan.instrument.record.analyses import clusters
from consan.instrument.record.analyses.computed import Computability, Computed, WordNeed
from consan.instrument.record.facts import FunctionFacts, ModuleFacts, RecordedFunction
from consan.instrument.record.families import global_memory
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.leaving import Leaving
from consan.instrument.record.text import polls
from consan.instrument.record.text.templates import Template
from consan.instrument.record.text.words import Located, TextVariant, Words
from consan.instrument.rewriting.context import Context, FunctionPlan
from consan.instrument.rewriting.emit import Unsupported


@dataclass
class StoredWords:
    """The words in the log of a function so far."""

    in_nodes: dict[int, int] = field(default_factory=dict)  # how many words each node of the graph stores
    stores: bool = False  # the compact log has some
    hashes: bool = False  # and hashes of some

    def add(self, node: int, words: int) -> None:
        """Words that a node stores too."""
        self.in_nodes[node] = self.in_nodes.get(node, 0) + words

    @property
    def total(self) -> int:
        """The words of all nodes."""
        return sum(self.in_nodes.values())

    def repeat(self, graph: Graph) -> bool:
        """Whether a loop stores words."""
        return any(count and graph.repeats(node) for node, count in self.in_nodes.items())


@dataclass
class FunctionRecorder:
    """Adds events to the block that the walk over a function is in. `pending`: the text of the instruction that the walk is at."""

    module: ModuleFacts
    function: RecordedFunction
    facts: FunctionFacts
    leaving: Leaving | None  # how threads leave when the host stops the launch
    global_races: global_memory.GlobalRecorder | None = field(init=False)  # where global memory is checked: it records all accesses to it
    current: Instruction | None = None  # that the walk is at
    node: int = 0  # that it is in
    block: Words | None = None
    pending: str = ""
    words: StoredWords = field(default_factory=StoredWords)
    needs: list[WordNeed] = field(default_factory=list)  # of the words, and of inserted text
    starts: set[int] = field(default_factory=set)  # of the instructions with events
    keys: dict[tuple[str, int], int] = field(default_factory=dict)  # of points with a mask: by opcode and segment
    landings: set[tuple[int, int]] = field(default_factory=set)  # nodes to which branches of the expansion go, and where their labels stand

    def __post_init__(self) -> None:
        self.global_races = None if self.function.mode is Mode.OFF else global_memory.GlobalRecorder(self)
        self.words.hashes = self.leaving is not None and self.leaving.positions  # then hashes show which threads have ended

    @property
    def context(self) -> Context:
        """The module's context."""
        return self.module.context

    @property
    def plan(self) -> FunctionPlan:
        """The function's plan."""
        return self.function.plan

    @property
    def variant(self) -> TextVariant:
        """Which text is written."""
        return self.module.variant

    @property
    def computed(self) -> Computed | None:
        """The values that the host can compute."""
        return self.function.computed

    @property
    def templates(self) -> list[Template]:
        """The module's templates."""
        return self.module.templates

    @property
    def body(self) -> Block:
        """The function's statements."""
        body = self.plan.function.body
        assert body is not None
        return body

    @property
    def polled(self) -> Set[int]:
        """The nodes with polls whose rounds may leave nothing."""
        return self.global_races.polls.nodes if self.global_races is not None else frozenset()

    def at(self, instruction: Instruction, node: int) -> None:
        """The walk comes to an instruction."""
        self.pending, self.current, self.node = "", instruction, node

    def open_block(self) -> Words:
        """The block that the walk is in; a new one if it is in none."""
        if self.current is not None:
            self.starts.add(self.current.start)
        if self.block is None:
            window = clusters.window(self.context.module)
            self.block = Words(len(self.templates) + 1, window, self.variant, self.computed, self.needs, self.function.hashing)
            self.templates.append(self.block.template)
            self.pending += self.block.header(late=self.module.leaves)
        self.block.ignored = self.current is not None and self.current.start in self.facts.ignored
        return self.block

    def closed(self, node: int) -> str:
        """End the block, if there is one."""
        if self.block is None:
            return ""
        block, self.block = self.block, None
        self.words.add(node, block.stored if self.variant is TextVariant.COMPACT else block.template.words)
        self.words.stores |= block.stored > 0
        self.words.hashes |= block.hashes
        return block.close(late=self.module.leaves) + polls.interrupted(self)

    def entered(self, node: int) -> str:
        """At the end of a node: count it, if the thread goes to where the host does not follow it."""
        computed, leaving = self.computed, self.leaving
        if computed is None or leaving is None or self.facts.cuts <= computed.faithful or not computed.enters(node):
            return ""
        return leaving.counted()

    def locate(self, instruction: Instruction, address: Operand, space: str, *, widened: bool = False) -> Located:
        """The place that an operand gives."""
        located, code = self.open_block().address(instruction, address, space, widened=widened)
        self.pending += code
        return located

    def guard(self, block: Words, instruction: Instruction) -> int:
        """The word that says whether an instruction executes."""
        word, code = block.guard(instruction)
        self.pending += code
        return word

    def number_of(self, instruction: Instruction, operand: Operand | None) -> WordValue:
        """The value of an operand, or its word."""
        if operand is None:
            raise Unsupported(f"{instruction.opcode} without an operand")
        value, code = self.open_block().number_word(instruction, operand)
        self.pending += code
        return value

    def site_of(self, instruction: Instruction) -> int:
        """The number of the site of an instruction that accesses nothing."""
        return self.context.site_of(self.plan, instruction, family_of(instruction), "none", "none", 0).number

    def needs_guard(self, instruction: Instruction) -> None:
        """Inserted text goes other ways by the guard of an instruction: the host must know it."""
        guard = guard_of(instruction)
        if guard is None:
            return
        if self.computed is None:
            self.needs.append(WordNeed(frozenset({guard.register}), hashed=True))
        elif self.computed.level((guard.register,)) is not Computability.KNOWN:
            raise Unsupported("a guard that is not known")
