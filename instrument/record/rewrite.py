"""The recording pass over a kernel, or a device function that has events: it walks the text once, in its order.

A block of the log ends where control may diverge (a label, a branch, a call, an exit), and after an instruction that may wait (a barrier, a
warp-synchronous instruction). Words are stored before the instruction that they describe, because it may overwrite its own operands.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from consan.instrument.control_flow import CONTROL, Graph, Key, definitions, graph_of, guard_of, written
from consan.instrument.effects import WordValue, kinds
from consan.instrument.effects.model import When
from consan.instrument.functions.annotated import ignored
from consan.instrument.functions.call_joins import points_of
from consan.instrument.functions.points import Join, Point
from consan.instrument.isa import UNKNOWN, family_of, flow_of, row_of
from consan.instrument.ptx import Instruction, Label, Operand
from consan.instrument.record import convergence, functions, seals
from consan.instrument.record.analyses import clusters
from consan.instrument.record.analyses.computed import LEADER, Computability, Computed, WordNeed
from consan.instrument.record.analyses.cuts import check_ends, cut_nodes, idling, longest_path
from consan.instrument.record.families import (
    accesses,
    global_memory,
    global_operands,
    launch_control,
    made,
    mbarriers,
    tensor_memory,
    tensors,
)
from consan.instrument.record.leaving import Leaving
from consan.instrument.record.recorded import Compact
from consan.instrument.record.text import expansion, polls, text
from consan.instrument.record.text.templates import Template
from consan.instrument.record.text.words import Located, TextVariant, Words
from consan.instrument.rewriting.context import Context, FunctionPlan, Work
from consan.instrument.rewriting.emit import Unsupported

_DEPARTURES = frozenset({"return", "exit"})
_BREAKS = CONTROL | {"call"}
_BLOCKING = (kinds.CtaBarrier, kinds.WarpSync, kinds.ClusterBarrierArrive, kinds.ClusterBarrierWait, kinds.TensorAllocRequest)


@dataclass
class KernelRewrite:
    """One kernel or device function being rewritten; `templates`: of the module, so that block numbers are unique in it."""

    context: Context
    plan: FunctionPlan
    number: int
    templates: list[Template]
    block: Words | None = None
    graph: Graph = field(init=False)
    points: dict[int, Point] = field(default_factory=dict)  # by the start of their instruction
    joins: dict[tuple[int, bool], list[Join]] = field(default_factory=dict)  # by instruction, and whether the place is after it
    keys: dict[tuple[str, int], int] = field(default_factory=dict)  # of points with a mask: by opcode
    words: dict[int, int] = field(default_factory=dict)  # stored in each node
    cuts: set[int] = field(default_factory=set)
    loads: dict[int, int] = field(default_factory=dict)  # from tensor memory: their numbers by the start of their instruction
    completions: dict[int, list[int]] = field(default_factory=dict)  # the loads that an instruction completes, by its start
    queries: set[int] = field(default_factory=set)  # of launch control, for an id: the starts of their instructions
    shown: dict[int, list[int]] = field(default_factory=dict)  # the queries whose id an instruction shows, by its start
    pending: str = ""
    reads: bool = False  # loads from global memory can meet an asynchronous copy
    writes: bool = False  # writes to it can
    fences: bool = False  # fences are recorded
    hashing: bool = True  # histories are compared; not where all CTAs are replayed together
    called: frozenset[str] = frozenset()  # the device functions that are recorded
    numbers: dict[str, int] = field(default_factory=dict)  # those of them in which lanes may bypass a point
    looped: bool = False  # a function that a thread may execute more than once for one call site
    may_part: bool = False  # lanes of a warp may part in one of those
    departures: list[Instruction] = field(default_factory=list)  # where threads exit or return
    suspensions: list[Instruction] = field(default_factory=list)  # calls of these functions
    global_races: global_memory.GlobalRecorder | None = None  # where global memory is checked: then it records all of these accesses
    leaves: bool = False  # threads leave when the host stops the launch
    leaving: Leaving | None = None  # how they do
    variant: TextVariant = TextVariant.FULL
    computed: Computed | None = None  # what the host can compute, in all manners but FULL
    needs: list[WordNeed] = field(default_factory=list)  # of the words, and of inserted text
    starts: set[int] = field(default_factory=set)  # of the instructions with events
    current: Instruction | None = None  # that the walk is at
    node: int = 0  # that it is in
    stores: bool = False  # into the compact log
    bounded: bool = False  # no loop does
    hashes: bool = False  # for it
    targets: set[tuple[int, int]] = field(default_factory=set)  # nodes to which branches of the expansion go, and where their labels stand
    sealing: bool = False  # of asynchronous copies with a side in global memory, the module has cp.async only
    seals: frozenset[int] = frozenset()  # by the start of their instruction
    ignored: frozenset[int] = frozenset()  # the same: accesses that are compared with no others

    @functools.cached_property
    def definitions(self) -> dict[Key, list[Instruction]]:
        """The instructions that write each register."""
        return definitions(self.plan.function)

    def rewrite(self) -> int:
        """Insert everything; returns the most words between two cuts."""
        body = self.plan.function.body
        assert body is not None
        self.graph = graph_of(self.plan.function)
        self.cuts = cut_nodes(self.graph)
        self.leaving = Leaving(self.plan, self.variant) if self.leaves else None
        self.hashes = self.leaving is not None and self.leaving.positions  # then hashes tell which threads have ended
        self.ignored = ignored(self.plan.function)
        self._seal()
        self._find_points()
        self.completions = tensor_memory.completions(self)
        self.shown = launch_control.uses(self)
        # A kernel that deals out its registers has none left for the exchange of the values of stmatrix.
        self.is_tight = any(row_of(each).deals_registers for each in self.plan.function.instructions())
        works = {work.instruction.start: work for work in self.plan.work}
        nodes = {id(step.instruction): number for number, node in enumerate(self.graph.nodes) for step in node.steps}
        last: Instruction | None = None
        node = 0
        for statement in body.walk():
            if isinstance(statement, Label):
                entered = self._entered(node) if last is not None and flow_of(last) not in CONTROL else ""
                self.context.edits.insert_before(statement, self.closed(node) + entered)
                last = None
            elif isinstance(statement, Instruction):
                node, last = nodes[id(statement)], statement
                self._instruction(statement, works.get(statement.start), node)
        if last is None or last.predicate is not None or flow_of(last) not in CONTROL:
            self.context.edits.insert_at(body.close, self.closed(node) + ("" if self.is_silent else self.end(returns=True) + "ret;\n"))
        for number, place in self.targets:
            self.context.edits.insert_at(place, f"{expansion.label(number, place)}:\n")
        self.bounded = self.variant is TextVariant.COMPACT and not any(
            count and self.graph.repeats(node) for node, count in self.words.items()
        )
        return (sum(self.words.values()) if self.bounded else longest_path(self.graph, self.cuts, self.words)) + 1

    def _frame(self) -> None:
        """Insert what comes before the kernel, and where threads depart."""
        body = self.plan.function.body
        assert body is not None
        if self.is_silent:
            return
        for instruction in self.departures:
            self.context.edits.insert_before(instruction, tensors.only_where(instruction, self.end(returns=row_of(instruction).returns)))
        kept = self.global_races.declarations() if self.global_races is not None else ""
        stored = text.compact_left(counts=not self.bounded) if self.variant is TextVariant.COMPACT else ""
        left = self.leaving.place(stored) if self.leaving is not None else ""
        self.context.edits.insert_at(body.open + 1, "\n" + self._prologue() + kept + left)
        if self.variant is TextVariant.COMPACT:
            self.context.edits.insert_before(next(self.plan.function.instructions()), self._constants())

    def _constants(self) -> str:
        """The first thread of the launch stores what the host needs to know."""
        assert self.computed is not None
        slots = [(self.computed.slot(each), each) for each in self.computed.constants if each != LEADER]
        leader = text.leader(self.computed.slot(LEADER)) if LEADER in self.computed.constants else ""
        return text.constants([(slot, each.name, each.offset, each.nbytes, each.symbol) for slot, each in slots]) + leader

    def computed_words(self) -> Computed:
        """The words of this kernel that the host can compute, after a full pass."""
        if not self.plan.is_entry:
            raise Unsupported("a device function")
        check_ends(self.graph, frozenset(self.starts))
        polled = frozenset(self.global_races.polls.nodes if self.global_races is not None else ())
        return Computed(self.plan, self.graph, frozenset(self.starts), self.needs, polled)

    def compact(self) -> Compact:
        """The part of a compact log that a launch needs to know."""
        assert self.computed is not None
        slots = {self.computed.slot(each): (each.nbytes, hashed) for each, hashed in self.computed.constants.items()}
        return Compact(self.stores, self.hashes, slots, self.computed.of_grid, sum(self.words.values()) * self.bounded)

    def needs_guard(self, instruction: Instruction) -> None:
        """Inserted text goes other ways by the guard of an instruction: the host must know it."""
        guard = guard_of(instruction)
        if guard is None:
            return
        if self.computed is None:
            self.needs.append(WordNeed(frozenset({guard.register}), hashed=True))
        elif self.computed.level((guard.register,)) is not Computability.KNOWN:
            raise Unsupported("a guard that is not known")

    def _entered(self, node: int) -> str:
        """At the end of a node: count it, if the thread goes to where the host does not follow it."""
        if self.computed is None or self.leaving is None or self.cuts <= self.computed.faithful or not self.computed.enters(node):
            return ""
        return self.leaving.counted()

    @property
    def is_silent(self) -> bool:
        """Whether nothing is recorded of a kernel, and nobody needs to stop it: it has no loop, and a fault loses every record."""
        return self.leaves and self.plan.is_entry and not (self.starts or self.cuts or self.suspensions or self.variant.on_host)

    def _prologue(self) -> str:
        if not self.plan.is_entry:
            return text.function_prologue()
        if self.variant is not TextVariant.FULL:
            if self.variant.on_host:
                return expansion.prologue(self.number)
            return text.compact_prologue(self.number, positions=self.leaving is not None and self.leaving.positions)
        return text.prologue(self.number) + (text.state() + text.forget_poll() if self.suspensions else "")

    def end(self, *, returns: bool) -> str:
        """The text before a thread returns from here, or exits."""
        if self.variant is not TextVariant.FULL:
            if self.variant.on_host:
                return text.ended()
            return text.compact_epilogue(counts=not self.bounded, hashes=self.hashes)
        return text.suspend() if returns and not self.plan.is_entry else text.epilogue()

    def _seal(self) -> None:
        """Leave out what only matters while a cp.async is in flight, if none can be then."""
        if self.sealing and self.global_races is None:
            self.seals = seals.seals_of(self.plan, self.graph)
            self.writes &= not self.seals

    def _find_points(self) -> None:
        points, joins = points_of(self.plan, self.numbers)
        any_open = any(point.open for point in points)
        self.plan.stats.open_points = sum(point.open for point in points)
        alone = self.may_part or any(map(mbarriers.is_wait, self.plan.work))  # a lane may wait alone: the log must hold where lanes meet
        every = any_open or alone
        self.points = {point.instruction.start: point for point in points if every or not point.certain}
        for join in joins:
            self.joins.setdefault((join.instruction.start, join.after), []).append(join)

    def cut(self, words: int) -> None:
        """Insert the checks for room, and what comes first and last. `words`: the most between two cuts, and one."""
        idling_heads = idling(self.graph, self.cuts, self._acts)
        for number in sorted(self.cuts):
            first, idles = self.graph.nodes[number].steps[0].instruction, number in idling_heads
            if self.leaving is None:
                code = text.cut(words) + text.stop() * idles
            else:
                room = 0 if self.bounded else words
                counts = self.computed is not None and self.computed.is_faithful(first)
                code = self.leaving.cut(room, first, idles=idles, counts=counts)
            self.context.edits.insert_at(first.start, code)
        for call in self.suspensions:
            self.context.edits.insert_after(call, "\n" + text.resume() + text.cut(words))
        self._frame()
        if not self.plan.is_entry:
            assert self.plan.function.body is not None
            self.context.edits.insert_at(self.plan.function.body.open + 1, text.cut(words))

    def _acts(self, node: int) -> bool:
        """Whether a thread that passes a node has an event that no round of a poll repeats, or a wait that it leaves at."""
        waits = self.leaving.waits if self.leaving is not None else set[int]()
        polled = self.global_races is not None and node in self.global_races.polls.nodes
        return bool(self.words.get(node) and not polled) or any(step.instruction.start in waits for step in self.graph.nodes[node].steps)

    def _instruction(self, instruction: Instruction, work: Work | None, node: int) -> None:
        self.pending, self.current, self.node = "", instruction, node
        for join in self.joins.get((instruction.start, False), ()):
            convergence.add_join(self, join)
        for query in self.shown.get(instruction.start, ()):
            launch_control.add_use(self, instruction, query)
        self._events(instruction, work, node)
        flow = flow_of(instruction)
        if flow in _BREAKS or mbarriers.is_wait(work):
            self.pending += self.closed(node) + self._stop() * mbarriers.is_wait(work)  # it may never return true
        if flow in CONTROL:
            self.pending += expansion.decision(self, instruction, node) + self._entered(node)
        if not self._replaced(instruction, node) and flow in _DEPARTURES:
            self.departures.append(instruction)
        self._suspend(instruction)
        if text_before := self.pending + (self.leaving.before_barrier(work) if self.leaving is not None else ""):
            self.context.edits.insert_before(instruction, text_before)
        if self.block is not None:
            self.block.written(written(instruction))
        self.pending = expansion.result(self, instruction, node)
        self._behind(instruction, work, node)
        for join in self.joins.get((instruction.start, True), ()):
            convergence.add_join(self, join)
        if self.pending:
            self.context.edits.insert_after(instruction, "\n" + self.pending)

    def _suspend(self, instruction: Instruction) -> None:
        """Before a call of a recorded function: store the place in the log."""
        if functions.is_recorded_call(instruction, self.called):
            self.suspensions.append(instruction)
            self.pending += text.suspend() + (text.suspend_limit() if self.plan.is_entry else "")

    def _replaced(self, instruction: Instruction, node: int) -> bool:
        """Whether something else stands in place of an instruction."""
        other = accesses.performed_at_once(instruction) or (accesses.only_members(instruction) if self.leaves else None)
        text_instead = expansion.replaced(self, instruction, node) if self.variant.on_host else other
        if text_instead is not None:
            self.context.edits.replace(instruction, text_instead)
        return text_instead is not None

    def _behind(self, instruction: Instruction, work: Work | None, node: int) -> None:
        """Events that an instruction makes once it has been executed."""
        if self.leaving is not None:
            self.pending += self.leaving.behind_barrier(work)
        if work is not None:
            made.add(self, work, When.BEHIND)
        for load in self.completions.get(instruction.start, ()):
            tensor_memory.add_completed(self, load)
        if self.global_races is not None:
            made.add(self, work or Work(instruction, row_of(instruction)), When.CHECKED_BEHIND)
            self.pending += self.global_races.after(node)

    def _events(self, instruction: Instruction, work: Work | None, node: int) -> None:
        point, row = self.points.get(instruction.start), UNKNOWN if work is None else work.row
        if point is not None:
            convergence.add_point(self, point)
            # Values of stmatrix are exchanged between lanes: the log holds the point before that.
            if row.is_matrix_access and row.does(kinds.Write) and not self.is_tight:
                self.pending += self.closed(node) + self._stop()
        if self.global_races is not None:
            made.add(self, work or Work(instruction, row_of(instruction)), When.CHECKED)
        if work is not None:
            made.add(self, work, When.BEFORE)
            made.count(self.plan.stats, work)
        if self.global_races is None and (
            (self.writes and global_operands.writes_global(instruction)) or (self.reads and global_operands.reads_global(instruction))
        ):
            global_operands.add_access(self, instruction)
            self.plan.stats.memory_sites += work is None
        if point is not None or row.does(*_BLOCKING) or (self.points and row.is_of_products):  # it may never be left
            self.pending += self.closed(node) + self._stop()

    def _stop(self) -> str:
        return "" if self.leaves else text.stop()

    def open_block(self) -> Words:
        """The block that the walk is in; a new one if it is in none."""
        if self.current is not None:
            self.starts.add(self.current.start)
        if self.block is None:
            window = clusters.window(self.context.module.target, self.context.module.version)
            self.block = Words(len(self.templates) + 1, window, self.variant, self.computed, self.needs, self.hashing)
            self.templates.append(self.block.template)
            self.pending += self.block.header(late=self.leaves)
        self.block.ignored = self.current is not None and self.current.start in self.ignored
        return self.block

    def closed(self, node: int) -> str:
        """End the block, if there is one."""
        if self.block is None:
            return ""
        block, self.block = self.block, None
        words = block.stored if self.variant is TextVariant.COMPACT else block.template.words
        self.words[node] = self.words.get(node, 0) + words
        self.stores |= block.stored > 0
        self.hashes |= block.hashes
        return block.close(late=self.leaves) + polls.interrupted(self)

    # -- events ----------------------------------------------------------------------------------------------------------

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
