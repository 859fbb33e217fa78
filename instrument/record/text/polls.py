"""Loops that poll memory, where strong accesses are in the log: an iteration that reads the same value stores nothing.

A strong load in a loop may wait for another thread, and so may an atomic that leaves memory as it was: a compare-and-swap that fails, an
exchange for the same value. An iteration repeats the one before if the poll has read the same at the same address, and no event lies
between the two. Then the cursor does not move past the poll's block, and the iteration draws no number.

A function that is called in a loop may poll once in each call. It keeps what it has read with the thread's place in the log (text.py).

In a compact log such a round stores the words of its branches, which the next one overwrites: so the host takes the way of the last one.
It does not know how many there were. So what a round writes to registers is unknown to the host (computed.py), and events that leave no
words note that the poll was interrupted.

Rounds with events between two reads stay in the log. The thread sleeps in them, once it has waited for some time (backoff.py).
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from consan.dataclass import dataclass
from consan.instrument.isa import destinations, lookup, names_other_gpus
from consan.instrument.ptx import Instruction
from consan.instrument.record.analyses import awaited
from consan.instrument.record.text import backoff, text
from consan.instrument.record.text.words import TextVariant
from consan.instrument.rewriting.emit import Snippet, guard_text

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

PLACE, SEEN, WANTED = "%__consan_pa", "%__consan_ps", "%__consan_pw"  # of a poll: address, value, the value to swap for
REPEATS = "%__consan_pq"  # whether a round of a poll repeats the one before
_LAST = "%__consan_pl"  # in a compact text: the number of the poll whose event is the thread's last one, or zero
# By the operation of an atomic: text that keeps a predicate `same` only if the atomic has left the memory as it was.
_UNCHANGED = {
    "cas": f"setp.ne.and.s64 {{same}}, {SEEN}, {WANTED}, {{same}};\n",
    "exch": f"setp.eq.and.s64 {{same}}, {SEEN}, {WANTED}, {{same}};\n",
    "add": f"setp.eq.and.s64 {{same}}, {WANTED}, 0, {{same}};\n",
    "or": f"or.b64 {WANTED}, {WANTED}, {SEEN}; setp.eq.and.s64 {{same}}, {SEEN}, {WANTED}, {{same}};\n",
    "and": f"and.b64 {WANTED}, {WANTED}, {SEEN}; setp.eq.and.s64 {{same}}, {SEEN}, {WANTED}, {{same}};\n",
}
_COMPARED = frozenset({"cas", "exch"})  # operations that only compare
_WIDEST_BITS = 8  # bytes up to which SEEN and WANTED hold all bits
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)  # of the parts of eight bytes of a value: odd


def can_rewind(instruction: Instruction) -> bool:
    """Whether rounds of a poll that read the same may leave nothing: an unguarded load or atomic."""
    return instruction.predicate is None and may_leave_unchanged(instruction)


def may_leave_unchanged(instruction: Instruction) -> bool:
    """Whether an access is a load, or an atomic with a test whether it leaves the memory as it was."""
    row = lookup(instruction.parts)
    return row is not None and (not row.event(instruction).first.writes or _unchanged(instruction) != "")


def _unchanged(instruction: Instruction, same: str = REPEATS) -> str:
    """The text that finds out whether an atomic has left the memory as it was; empty for any other operation, and for a load."""
    row = lookup(instruction.parts)
    if row is None or not row.is_atomic or not destinations(instruction):
        return ""
    words = row.modifiers(instruction.parts)
    operation = next((each for each in words.values() if each in _UNCHANGED), "")
    whole = row.event(instruction).first.total_bytes <= _WIDEST_BITS and "f" not in words.get("type", "")
    return _UNCHANGED[operation].format(same=same) if operation in _COMPARED or (operation and whole) else ""


@dataclass
class RecordedPolls:
    """The polls of one kernel. `starts`: of their instructions, in the order of the text."""

    kernel: FunctionRecorder
    starts: list[int] = field(default_factory=list)
    nodes: set[int] = field(default_factory=set)
    current: Instruction | None = None  # that the walk is at, if its rounds may leave nothing
    waits: bool = False  # the walk is at an access whose loop does nothing but wait
    slowed: Instruction | None = None  # that the walk is at, if its rounds may sleep
    sleeping: list[int] = field(default_factory=list)  # the nodes of such polls
    identity: int = 0  # in the module, of the poll that the walk is at, if its rounds are calls: the number of its block

    def begin(self, instruction: Instruction, node: int) -> None:
        """Give an access that may repeat a block of its own."""
        graph = self.kernel.facts.graph
        repeats = graph.repeats(node)
        self.waits = repeats and may_leave_unchanged(instruction) and awaited.only_waits(graph, node, instruction)
        if self.waits and backoff.exists(self.kernel.context.module):
            self.slowed = instruction
        if can_rewind(instruction) and (repeats or self.kernel.function.looped):
            self.kernel.pending += self.kernel.closed(node)
            self.identity = 0 if repeats else len(self.kernel.templates) + 1
            self.starts.append(instruction.start)
            self.nodes.add(node)
            self.current = instruction

    @property
    def compares(self) -> bool:
        """Whether the access that the walk is at is compared with the one before it: PLACE, SEEN and WANTED are wanted."""
        return self.current is not None or self.slowed is not None

    @property
    def _name(self) -> str:
        return f"%__consan_p{len(self.starts) - 1}_"

    def declarations(self) -> str:
        """The registers that polls keep: where the last block of each ended, its address and value."""
        kept = (f".reg .b64 %__consan_p{number}_<3>; mov.b64 %__consan_p{number}_0, 0;\n" for number in range(len(self.starts)))
        last = f".reg .b32 {_LAST}; mov.b32 {_LAST}, 0;\n" if self.kernel.variant is TextVariant.COMPACT else ""
        last += backoff.declarations(len(self.sleeping))
        return f".reg .b64 {PLACE}, {SEEN}, {WANTED};\n.reg .pred {REPEATS};\n{last}" + "".join(kept)

    def repeats(self) -> str:
        """Find out whether the round repeats the one before."""
        assert self.current is not None
        compact = self.kernel.variant is TextVariant.COMPACT
        last = f"setp.eq.s32 {REPEATS}, {_LAST}, {len(self.starts)};" if compact else f"setp.eq.s64 {REPEATS}, {self._name}0, %__consan_c;"
        if self.identity:
            last = text.resume_poll(self._name, self.identity, REPEATS)
            last += f"setp.eq.and.s64 {REPEATS}, {self._name}0, %__consan_c, {REPEATS};"
        return (
            f"{last}\nsetp.eq.and.s64 {REPEATS}, {self._name}1, {PLACE}, {REPEATS};\n"
            f"setp.eq.and.s64 {REPEATS}, {self._name}2, {SEEN}, {REPEATS};\n{_unchanged(self.current)}"
        )

    def forward(self, node: int) -> str:
        """End the block of a poll, and move the cursor past it, unless it repeats the one before. Then sleep, if it waits long."""
        return self._forward(node) + self._slept(node)

    def _slept(self, node: int) -> str:
        if self.slowed is None:
            return ""
        poll, self.slowed = self.slowed, None
        if self.kernel.variant.on_host:
            return ""
        self.sleeping.append(node)
        far = self.kernel.module.leaves and names_other_gpus(poll)
        return backoff.slept(len(self.sleeping) - 1, PLACE, SEEN, guard_text(poll), _unchanged(poll, backoff.SAME), far=far)

    def _forward(self, node: int) -> str:
        if self.current is None:
            return ""
        self.current, kernel = None, self.kernel
        ends = kernel.closed(node) + (kernel.leaving.counted() if kernel.leaving is not None else "")
        if kernel.variant.on_host:
            return ends
        forward = "".join(f"@!{REPEATS} {each}\n" for each in ends.splitlines()) + f"mov.b64 {self._name}1, {PLACE};\n"
        forward += f"mov.b64 {self._name}2, {SEEN};\n"
        if kernel.variant is TextVariant.FULL:
            kept = text.suspend_poll(self._name, self.identity) if self.identity else ""
            return f"{forward}mov.b64 {self._name}0, %__consan_c;\n{kept}"
        back = f"@{REPEATS} mov.b64 %__consan_c, {self._name}0;\n@!{REPEATS} mov.b64 {self._name}0, %__consan_c;\n"
        return f"{forward}{back}mov.b32 {_LAST}, {len(self.starts)};\n"

    def keep(self, snippet: Snippet, register: str, pieces: list[str]) -> None:
        """Keep a value of up to eight words in one 64-bit register of polls: up to two words as they are, more words as a hash."""
        if not self.compares:
            return
        halves = [pieces[at : at + 2] for at in range(0, len(pieces), 2)]
        wholes = [self._joined(snippet, *half) for half in halves]
        if len(wholes) == 1:
            snippet.add(f"mov.b64 {register}, {wholes[0]};")
            return
        snippet.add(f"mul.lo.u64 {register}, {wholes[0]}, {_FACTORS[0]:#x};")
        for whole, factor in zip(wholes[1:], _FACTORS[1:], strict=False):
            snippet.add(f"mad.lo.u64 {register}, {whole}, {factor:#x}, {register};")

    def _joined(self, snippet: Snippet, low: str, high: str = "0") -> str:
        whole, rest = snippet.register("b64"), snippet.register("b64")
        snippet.add(f"cvt.u64.u32 {rest}, {low};")
        snippet.add(f"cvt.u64.u32 {whole}, {high}; shl.b64 {whole}, {whole}, 32; or.b64 {whole}, {rest}, {whole};")
        return whole


def interrupted(kernel: FunctionRecorder) -> str:
    """Behind a block: no poll repeats."""
    compact = kernel.variant is TextVariant.COMPACT and kernel.computed is not None and kernel.computed.polls
    return f"mov.b32 {_LAST}, 0;\n" if compact else ""
