"""The recording pass over a kernel, or a device function that has events: it walks the text once, in its order."""

from __future__ import annotations

from dataclasses import field

from consan.dataclass import dataclass
from consan.instrument.control_flow import CONTROL, written
from consan.instrument.effects import kinds
from consan.instrument.effects.model import When
from consan.instrument.isa import UNKNOWN, flow_of, row_of
from consan.instrument.ptx import Instruction, Label
from consan.instrument.record import convergence, functions
from consan.instrument.record.analyses.computed import Computed
from consan.instrument.record.analyses.cuts import check_ends, longest_path, loops_without
from consan.instrument.record.facts import ModuleFacts, RecordedFunction, facts_of
from consan.instrument.record.families import accesses, global_operands, launch_control, made, mbarriers, tensor_memory
from consan.instrument.record.frame import FunctionFrame
from consan.instrument.record.leaving import Leaving
from consan.instrument.record.recorded import Compact, DecidingBytes
from consan.instrument.record.recorder import FunctionRecorder
from consan.instrument.record.text import expansion, text
from consan.instrument.record.text.words import TextVariant
from consan.instrument.rewriting.context import Work
from consan.instrument.rewriting.emit import Unsupported

_DEPARTURES = frozenset({"return", "exit"})
_BREAKS = CONTROL | {"call"}
_BLOCKING = (kinds.CtaBarrier, kinds.WarpSync, kinds.ClusterBarrierArrive, kinds.ClusterBarrierWait, kinds.TensorAllocRequest)


@dataclass
class KernelRewrite:
    """One kernel or device function being rewritten."""

    recorder: FunctionRecorder
    departures: list[Instruction] = field(default_factory=list)  # where threads exit or return
    suspensions: list[Instruction] = field(default_factory=list)  # calls of recorded functions
    bounded: bool = False  # no loop stores words of the compact log

    @classmethod
    def of(cls, module: ModuleFacts, function: RecordedFunction) -> KernelRewrite:
        """The rewrite of a function, before its walk."""
        leaving = Leaving(function.plan, module.variant) if module.leaves else None
        return cls(FunctionRecorder(module, function, facts_of(module, function), leaving))

    @property
    def module(self) -> ModuleFacts:
        """The function's module."""
        return self.recorder.module

    @property
    def name(self) -> str:
        """The function's name."""
        return self.recorder.plan.function.name

    @property
    def is_silent(self) -> bool:
        """Whether nothing is recorded of a kernel, and nobody needs to stop it: it has no loop, and a fault loses every record."""
        if not (self.module.leaves and self.recorder.plan.is_entry):
            return False
        return not (self.recorder.starts or self.recorder.facts.cuts or self.suspensions or self.module.variant.on_host)

    def rewrite(self) -> int:
        """Insert what is recorded; returns the most words between two cuts."""
        recorder, edits, graph = self.recorder, self.module.context.edits, self.recorder.facts.graph
        works = {work.instruction.start: work for work in recorder.plan.work}
        nodes = {id(step.instruction): number for number, node in enumerate(graph.nodes) for step in node.steps}
        last: Instruction | None = None
        node = 0
        for statement in recorder.body.walk():
            if isinstance(statement, Label):
                entered = recorder.entered(node) if last is not None and flow_of(last) not in CONTROL else ""
                edits.insert_before(statement, recorder.closed(node) + entered)
                last = None
            elif isinstance(statement, Instruction):
                node, last = nodes[id(statement)], statement
                self._instruction(statement, works.get(statement.start), node)
        falls = last is None or last.predicate is not None or flow_of(last) not in CONTROL
        closed = recorder.closed(node) if falls else ""
        words = recorder.words
        self.bounded = self.module.variant is TextVariant.COMPACT and not words.repeat(graph)
        if falls:
            edits.insert_at(recorder.body.close, closed + ("" if self.is_silent else self._frame().end(returns=True) + "ret;\n"))
        for number, place in recorder.landings:
            edits.insert_at(place, f"{expansion.label(number, place)}:\n")
        return (words.total if self.bounded else longest_path(graph, recorder.facts.cuts, words.in_nodes)) + 1

    def cut(self, words: int) -> None:
        """Insert the checks for room, and what comes first and last. `words`: the most between two cuts, and one."""
        frame = self._frame()
        frame.insert_cuts(words)
        if not self.is_silent:
            frame.insert_ends(self.departures)
        if not self.recorder.plan.is_entry:
            self.module.context.edits.insert_at(self.recorder.body.open + 1, text.cut(words))

    def _frame(self) -> FunctionFrame:
        return FunctionFrame(self.recorder, self.suspensions, self.bounded)

    def computed_words(self) -> Computed:
        """The words of this kernel that the host can compute, after a full pass."""
        recorder = self.recorder
        if not recorder.plan.is_entry:
            raise Unsupported("a device function")
        starts = frozenset(recorder.starts)
        check_ends(recorder.facts.graph, starts)
        return Computed(recorder.plan, recorder.facts.graph, starts, recorder.needs, frozenset(recorder.polled))

    def compact(self) -> Compact:
        """The part of a compact log that a launch needs to know."""
        words, computed = self.recorder.words, self.recorder.computed
        assert computed is not None
        constants = computed.constants
        slots = {constants.slot(each): (each.nbytes, hashed) for each, hashed in constants.hashed.items()}
        decides = tuple(DecidingBytes(*each) for each in constants.deciding(list(computed.inputs.parameters)))
        ends = not (words.hashes or loops_without(self.recorder.facts.graph, computed.branches))
        in_nodes = {} if self.bounded else {node: count for node, count in words.in_nodes.items() if count}
        return Compact(words.stores, words.hashes, slots, constants.of_grid, words.total * self.bounded, decides, ends, in_nodes)

    def _instruction(self, instruction: Instruction, work: Work | None, node: int) -> None:
        recorder, facts, edits = self.recorder, self.recorder.facts, self.module.context.edits
        recorder.at(instruction, node)
        for join in facts.joins.get((instruction.start, False), ()):
            convergence.add_join(recorder, join)
        for query in facts.shown.get(instruction.start, ()):
            launch_control.add_use(recorder, instruction, query)
        self._events(instruction, work, node)
        flow = flow_of(instruction)
        if flow in _BREAKS or mbarriers.is_wait(work):
            recorder.pending += recorder.closed(node) + self._stop() * mbarriers.is_wait(work)  # it may never return true
        if flow in CONTROL:
            recorder.pending += expansion.decision(recorder, instruction, node) + recorder.entered(node)
        if not self._replaced(instruction, node) and flow in _DEPARTURES:
            self.departures.append(instruction)
        self._suspend(instruction)
        if text_before := recorder.pending + (recorder.leaving.before_barrier(work) if recorder.leaving is not None else ""):
            edits.insert_before(instruction, text_before)
        if recorder.block is not None:
            recorder.block.written(written(instruction))
        recorder.pending = expansion.result(recorder, instruction, node)
        self._behind(instruction, work, node)
        for join in facts.joins.get((instruction.start, True), ()):
            convergence.add_join(recorder, join)
        if recorder.pending:
            edits.insert_after(instruction, "\n" + recorder.pending)

    def _suspend(self, instruction: Instruction) -> None:
        """Before a call of a recorded function: store the place in the log."""
        if functions.is_recorded_call(instruction, self.module.called):
            self.suspensions.append(instruction)
            self.recorder.pending += text.suspend() + (text.suspend_limit() if self.recorder.plan.is_entry else "")

    def _replaced(self, instruction: Instruction, node: int) -> bool:
        """Whether something else stands in place of an instruction."""
        other = accesses.performed_at_once(instruction) or (accesses.only_members(instruction) if self.module.leaves else None)
        text_instead = expansion.replaced(self.recorder, instruction, node) if self.module.variant.on_host else other
        if text_instead is not None:
            self.module.context.edits.replace(instruction, text_instead)
        return text_instead is not None

    def _behind(self, instruction: Instruction, work: Work | None, node: int) -> None:
        """Events that an instruction makes once it has been executed."""
        recorder = self.recorder
        if recorder.leaving is not None:
            recorder.pending += recorder.leaving.behind_barrier(work)
        if work is not None:
            made.add(recorder, work, When.BEHIND)
        for load in recorder.facts.completions.get(instruction.start, ()):
            tensor_memory.add_completed(recorder, load)
        if recorder.global_races is not None:
            made.add(recorder, work or Work(instruction, row_of(instruction)), When.CHECKED_BEHIND)
            recorder.pending += recorder.global_races.after(node)

    def _events(self, instruction: Instruction, work: Work | None, node: int) -> None:
        recorder, facts = self.recorder, self.recorder.facts
        point, row = facts.points.get(instruction.start), UNKNOWN if work is None else work.row
        if point is not None:
            convergence.add_point(recorder, point)
            # Values of stmatrix are exchanged between lanes: the log holds the point before that.
            if row.is_matrix_access and row.does(kinds.Write):
                recorder.pending += recorder.closed(node) + self._stop()
        if recorder.global_races is not None:
            made.add(recorder, work or Work(instruction, row_of(instruction)), When.CHECKED)
        if work is not None:
            made.add(recorder, work, When.BEFORE)
            made.count(recorder.plan.stats, work)
        if recorder.global_races is None and self.module.meets_copies(instruction, sealed=bool(facts.seals)):
            global_operands.add_access(recorder, instruction)
            recorder.plan.stats.memory_sites += work is None
        if point is not None or row.does(*_BLOCKING) or (facts.points and row.is_of_products):  # it may never be left
            recorder.pending += recorder.closed(node) + self._stop()

    def _stop(self) -> str:
        return "" if self.module.leaves else text.stop()
