"""Text around the recorded text of a function: what it begins with, the checks for room, and how threads leave it."""

from __future__ import annotations

from collections.abc import Collection

from consan.dataclass import dataclass
from consan.instrument.control_flow.paths import components
from consan.instrument.isa import row_of
from consan.instrument.ptx import Instruction
from consan.instrument.record.analyses.cuts import idling
from consan.instrument.record.analyses.launch_inputs import LEADER, LaunchConstants
from consan.instrument.record.families import tensors
from consan.instrument.record.recorder import FunctionRecorder
from consan.instrument.record.text import expansion, text
from consan.instrument.record.text.words import TextVariant


@dataclass(frozen=True)
class FunctionFrame:
    """The frame of a function whose events are stored. `bounded`: no loop stores words of the compact log."""

    recorder: FunctionRecorder
    suspensions: Collection[Instruction]  # calls of recorded functions
    bounded: bool = False

    def insert_cuts(self, words: int) -> None:
        """Insert the checks for room. `words`: the most between two cuts, and one."""
        recorder, facts, edits = self.recorder, self.recorder.facts, self.recorder.context.edits
        idling_heads, rings = idling(facts.graph, facts.cuts, self._acts), components(facts.graph.successors, facts.graph.predecessors)
        slow = {rings[node] for node in self._sleeping}  # loops in which threads look often enough only if they do so behind each sleep
        for number in sorted(facts.cuts):
            first, idles = facts.graph.nodes[number].steps[0].instruction, number in idling_heads
            if recorder.leaving is None:
                code = text.cut(words) + text.stop() * idles
            else:
                room = 0 if self.bounded else words
                counts = recorder.computed is not None and recorder.computed.is_faithful(first)
                code = recorder.leaving.cut(room, first, idles=idles or rings[number] in slow, counts=counts, sleeps=bool(slow))
            edits.insert_at(first.start, code)
        for call in self.suspensions:
            edits.insert_after(call, "\n" + text.resume() + text.cut(words))

    @property
    def _sleeping(self) -> list[int]:
        """The nodes with polls behind which a thread may sleep."""
        return self.recorder.global_races.polls.sleeping if self.recorder.global_races is not None else []

    def _acts(self, node: int) -> bool:
        """Whether a thread that passes a node has an event that no round of a poll repeats, or a wait that it leaves at."""
        recorder = self.recorder
        waits = recorder.leaving.waits if recorder.leaving is not None else set[int]()
        stores = recorder.words.in_nodes.get(node) and node not in recorder.polled
        return bool(stores) or any(step.instruction.start in waits for step in recorder.facts.graph.nodes[node].steps)

    def insert_ends(self, departures: Collection[Instruction]) -> None:
        """Insert what comes before the function, and where threads exit or return."""
        recorder, edits = self.recorder, self.recorder.context.edits
        for instruction in departures:
            edits.insert_before(instruction, tensors.only_where(instruction, self.end(returns=row_of(instruction).returns)))
        kept = recorder.global_races.declarations() if recorder.global_races is not None else ""
        stored = text.compact_left(counts=not self.bounded) if recorder.variant is TextVariant.COMPACT else ""
        left = recorder.leaving.place(stored) if recorder.leaving is not None else ""
        edits.insert_at(recorder.body.open + 1, "\n" + self._prologue() + kept + left)
        if recorder.variant is TextVariant.COMPACT and recorder.computed is not None:
            edits.insert_before(next(recorder.plan.function.instructions()), _constants(recorder.computed.constants))

    def _prologue(self) -> str:
        recorder, number = self.recorder, self.recorder.function.number
        if not recorder.plan.is_entry:
            return text.function_prologue()
        if recorder.variant is TextVariant.FULL:
            return text.prologue(number) + (text.state() + text.forget_poll() if self.suspensions else "")
        if recorder.variant.on_host:
            return expansion.prologue(number)
        return text.compact_prologue(number, positions=recorder.leaving is not None and recorder.leaving.positions)

    def end(self, *, returns: bool) -> str:
        """The text before a thread returns from here, or exits."""
        recorder = self.recorder
        if recorder.variant is TextVariant.FULL:
            return text.suspend() if returns and not recorder.plan.is_entry else text.epilogue()
        if recorder.variant.on_host:
            return text.ended()
        return text.compact_epilogue(counts=not self.bounded, hashes=recorder.words.hashes)


def _constants(constants: LaunchConstants) -> str:
    """The first thread of the launch stores what the host needs to know."""
    slots = [(constants.slot(each), each) for each in constants.hashed if each != LEADER]
    leader = text.leader(constants.slot(LEADER)) if LEADER in constants.hashed else ""
    return text.constants([(slot, each.name, each.offset, each.nbytes, each.symbol) for slot, each in slots]) + leader
