"""How threads of a recorded kernel leave it when the host stops their launch.

The host sets a word behind the launch's address. A thread looks at it where it may stay for ever: at a wait for an mbarrier that has
failed, at the head of a loop that a thread can go round without an event, and behind a barrier that has taken long. To look takes a
microsecond, so loops do in one of 256 slices of the clock only, or where places are counted, in 32 of 4,096.

A thread that leaves writes down where: the wait that failed, as if it had returned, and a mark with the line. It stores no hashes, so its
CTA is one that did not end. Its exit releases barriers of all threads of the CTA, and of the cluster. At barriers with a count it arrives
for all other threads, because exits do not count there.

Not handled: barriers whose name or count is in a register; threads that wait there stay. Loops with
events in each round look only once their log is full.
"""

from __future__ import annotations

import itertools
from dataclasses import field

from consan.dataclass import dataclass
from consan.instrument.effects import LANES, ClusterBarrierWait, CtaBarrier
from consan.instrument.isa import row_of
from consan.instrument.ptx import Immediate, Instruction
from consan.instrument.record.families import mbarriers
from consan.instrument.record.text import backoff, expansion, text
from consan.instrument.record.text.templates import LEFT
from consan.instrument.record.text.words import TextVariant
from consan.instrument.rewriting.context import FunctionPlan, Work, operand_of
from consan.instrument.waits.waits import pure_waits

SLICE = 0x3FC00  # of the clock: 1,024 cycles of 262,144
ITERATIONS = 0xFE0  # of the count of places: the last 32 of 4,096, so that short loops do not wait for what they look at
LONG = 1 << 18  # cycles; a barrier that takes longer is rare
_Counted = tuple[tuple[int, int], ...]


@dataclass
class Leaving:
    """The text that threads of one function leave by."""

    plan: FunctionPlan
    variant: TextVariant = TextVariant.FULL
    leaves: bool = False  # a thread may
    positions: bool = field(init=False)  # a thread may stay at a barrier with a count
    waits: set[int] = field(init=False)  # those that a thread leaves at, by their start
    _counted: _Counted = field(init=False)
    _products: bool = field(init=False)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)  # of labels

    def __post_init__(self) -> None:
        self.waits = pure_waits(self.plan.function, (work.instruction for work in self.plan.work if mbarriers.is_wait(work)))
        self.positions = any(_blocks(work) and operand_of(work, "count") is not None for work in self.plan.work)
        self._products = any(work.row.is_of_products for work in self.plan.work)
        self._counted = tuple(dict.fromkeys(filter(None, map(_count_of, self.plan.work))))

    def cut(self, words: int, first: Instruction, *, idles: bool, counts: bool = False, sleeps: bool = False) -> str:
        """The check for room at the head of a loop, none without `words`. `idles`: a thread can go round the loop without an event.

        `counts`: the host passes the place as often as the thread does. `sleeps`: threads of the kernel do; one that has slept long looks.
        """
        if self.variant is TextVariant.EXPANSION:
            return expansion.cut(words, self._label("reads")) + (self.counted() if counts else "")
        room = self._label("room")
        slept = f"or.pred %__consan_q, %__consan_q, {backoff.LONG};\n" if sleeps else ""
        check = text.cut(words, _due() + slept + self._at_loop(first), room) if words else ""
        due = (_due() if not counts else _sometimes()) + slept
        return (self.counted() if counts else "") + check + (due + self._at_loop(first) if idles else "")

    def _at_loop(self, first: Instruction) -> str:
        return _look() + self._leave(first.line)

    def counted(self) -> str:
        """Count a place, so that the host knows how far a thread that left has come. In the expansion: leave where it did."""
        if self.variant is TextVariant.FULL:
            return ""
        count = "add.u32 %__consan_n, %__consan_n, 1;\n"
        if self.variant is TextVariant.COMPACT:
            return count
        stay = self._label("stays")
        mark = "st.global.u32 [%__consan_c], %__consan_o;\nexit;\n"
        return f"{count}setp.ne.u32 %__consan_q, %__consan_n, %__consan_m;\n@%__consan_q bra {stay};\n{mark}{stay}:\n"

    def at_failed_wait(self, instruction: Instruction, label: str) -> str:
        """Go to a label, unless the host stops the launch. A try_wait fails only after it has waited long, so each failure looks."""
        blocks = row_of(instruction).is_blocking_phase_wait
        return (_always() if blocks else _due()) + _look() + f"@!%__consan_q bra {label};\n"

    def behind_wait(self, instruction: Instruction, passed: str) -> str:
        """Behind the words of a wait. `passed`: the predicate that it has returned."""
        if self.variant is TextVariant.EXPANSION:
            return self.counted()
        return self.counted() + f"not.pred %__consan_q, {passed};\n" + self._leave(instruction.line)

    def before_barrier(self, work: Work | None) -> str:
        """Note the time. A thread of a compact kernel writes down that it waits, where exits of others may not release it."""
        if work is None or not _blocks(work):
            return ""
        counts = operand_of(work, "count") is not None
        if self.variant is TextVariant.EXPANSION:
            stay = self._label("stays")
            check = "add.u32 %__consan_x, %__consan_n, 1; setp.ne.u32 %__consan_q, %__consan_x, %__consan_i;\n"
            return f"{check}@%__consan_q bra {stay};\nexit;\n{stay}:\n" if counts else ""
        waits = text.waits() if counts and self.variant is TextVariant.COMPACT else ""
        return waits + "mov.u32 %__consan_e, %clock;\n"

    def behind_barrier(self, work: Work | None) -> str:
        """Look, if the barrier has taken long."""
        if work is None or not _blocks(work):
            return ""
        if self.variant is TextVariant.EXPANSION:
            return self.counted()
        took = "mov.u32 %__consan_x, %clock; sub.u32 %__consan_x, %__consan_x, %__consan_e;\n"
        late = f"setp.ge.u32 %__consan_q, %__consan_x, {LONG};\n"
        return self.counted() + took + late + _look() + self._leave(work.instruction.line)

    def _leave(self, line: int) -> str:
        """Leave from a line of the PTX, if the predicate is true."""
        stay, mark = self._label("stays"), f"mov.u32 %__consan_w, {LEFT | line};"
        mark += " st.global.u32 [%__consan_c], %__consan_w;\n" if self.variant is TextVariant.FULL else "\n"
        # A product in flight at an exit makes the assembler wait for each one where it is issued.
        drain = "wgmma.wait_group.sync.aligned 0;\n" if self._products else ""
        self.leaves = True
        return f"@!%__consan_q bra {stay};\n{mark}{drain}bra {text.LEFT};\n{stay}:\n"

    def place(self, stored: str) -> str:
        """The one place of a kernel where threads leave, after the walk over it. `stored`: what they store there."""
        return text.left("".join(map(self._arrive, self._counted)), stored) if self.leaves else ""

    def _arrive(self, counted: tuple[int, int]) -> str:
        """Arrive at a barrier for all other warps that it counts."""
        (barrier, count), again = counted, self._label("arrives")
        return f"""mov.u32 %__consan_x, {count // LANES - 1};
{again}:
barrier.arrive {barrier}, {count};
sub.u32 %__consan_x, %__consan_x, 1; setp.ne.u32 %__consan_q, %__consan_x, 0;
@%__consan_q bra {again};
"""

    def _label(self, name: str) -> str:
        return f"$__consan_{name}{next(self._numbers)}"


def _due() -> str:
    return f"mov.u32 %__consan_x, %clock; and.b32 %__consan_x, %__consan_x, {SLICE}; setp.eq.u32 %__consan_q, %__consan_x, 0;\n"


def _always() -> str:
    return "mov.u32 %__consan_x, 0; setp.eq.u32 %__consan_q, %__consan_x, 0;\n"


def _sometimes() -> str:
    """As `_due`, where places are counted: that needs no clock."""
    return f"and.b32 %__consan_x, %__consan_n, {ITERATIONS}; setp.eq.u32 %__consan_q, %__consan_x, {ITERATIONS};\n"


def _look() -> str:
    """Whether the host stops the launch. Only threads with the predicate look."""
    return f"""mov.u32 %__consan_x, 0;
@%__consan_q ld.volatile.global.u32 %__consan_x, [{text.LAUNCH}+{text.SWITCH}];
setp.ne.u32 %__consan_q, %__consan_x, 0;
"""


def _blocks(work: Work | None) -> bool:
    return work is not None and (work.row.awaited or work.row.does(ClusterBarrierWait))


def _count_of(work: Work) -> tuple[int, int] | None:
    """The number and the thread count of a barrier with a count for several warps, where the text gives both."""
    if not work.row.does(CtaBarrier):
        return None
    barrier, count = operand_of(work, "barrier"), operand_of(work, "count")
    if not (isinstance(barrier, Immediate) and isinstance(count, Immediate)) or int(count.value) <= LANES:
        return None
    return int(barrier.value), int(count.value)
