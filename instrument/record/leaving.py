"""How threads of a recorded kernel leave it when the host stops their launch.

The host sets a word behind the launch's address. A thread looks at it where it may stay for ever: at a wait for an mbarrier that has
failed, at the head of a loop that a thread can go round without an event, and behind a barrier that has taken long. So that waiting costs
little, loops look in one of 256 slices of the clock only.

A thread that leaves writes down where: the wait that failed, as if it had returned, and a mark with the line. It stores no hashes, so its
CTA is one that did not end. Its exit releases barriers of all threads of the CTA, and of the cluster. At barriers with a count it arrives
for all other threads, because exits do not count there.

Not handled: barriers whose name or count is in a register; threads that wait there stay. Loops with
events in each round look only once their log is full.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from consan.instrument.passes.context import FunctionPlan, Work, operand_of
from consan.instrument.passes.waits import pure_waits
from consan.instrument.ptx import Immediate, Instruction
from consan.instrument.record import mbarriers, text
from consan.instrument.record.templates import LANES, LEFT

SLICE = 0x3FC00  # of the clock: 1,024 cycles of 262,144
LONG = 1 << 18  # cycles; a barrier that takes longer is rare
_BLOCKING = frozenset({"barrier", "cluster-barrier"})
_Counted = tuple[tuple[int, int], ...]


@dataclass
class Leaving:
    """The text that threads of one function leave by."""

    plan: FunctionPlan
    waits: set[int] = field(init=False)  # those that a thread leaves at, by their start
    _counted: _Counted = field(init=False)
    _products: bool = field(init=False)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)  # of labels

    def __post_init__(self) -> None:
        self.waits = pure_waits(self.plan.function, (work.instruction for work in self.plan.work if mbarriers.is_wait(work)))
        self._products = any(work.row.family == "wgmma" for work in self.plan.work)
        self._counted = tuple(dict.fromkeys(filter(None, map(_count_of, self.plan.work))))

    def cut(self, words: int, first: Instruction, *, idles: bool) -> str:
        """The check for room at the head of a loop. `idles`: a thread can go round the loop without an event."""
        room = self._label("room")
        return text.cut(words, self._at_loop(first), room) + (self._at_loop(first) if idles else "")

    def _at_loop(self, first: Instruction) -> str:
        return _due() + _look() + self._leave(first.line)

    def at_failed_wait(self, label: str) -> str:
        """Go to a label, unless the host stops the launch."""
        return _due() + _look() + f"@!%__consan_q bra {label};\n"

    def behind_wait(self, instruction: Instruction, passed: str) -> str:
        """Behind the words of a wait. `passed`: the predicate that it has returned."""
        return f"not.pred %__consan_q, {passed};\n" + self._leave(instruction.line)

    def before_barrier(self, work: Work | None) -> str:
        """Note the time."""
        return "mov.u32 %__consan_e, %clock;\n" if _blocks(work) else ""

    def behind_barrier(self, work: Work | None) -> str:
        """Look, if the barrier has taken long."""
        if work is None or not _blocks(work):
            return ""
        took = "mov.u32 %__consan_x, %clock; sub.u32 %__consan_x, %__consan_x, %__consan_e;\n"
        return took + f"setp.ge.u32 %__consan_q, %__consan_x, {LONG};\n" + _look() + self._leave(work.instruction.line)

    def _leave(self, line: int) -> str:
        """Leave from a line of the PTX, if the predicate is true."""
        stay, mark = self._label("stays"), f"mov.u32 %__consan_w, {LEFT | line}; st.global.u32 [%__consan_c], %__consan_w;\n"
        # A product in flight at an exit makes the assembler wait for each one where it is issued.
        drain = "wgmma.wait_group.sync.aligned 0;\n" if self._products else ""
        return f"@!%__consan_q bra {stay};\n{mark}{''.join(map(self._arrive, self._counted))}{drain}exit;\n{stay}:\n"

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


def _look() -> str:
    """Whether the host stops the launch. Only threads with the predicate look."""
    return f"""mov.u32 %__consan_x, 0;
@%__consan_q ld.volatile.global.u32 %__consan_x, [{text.LAUNCH}+{text.SWITCH}];
setp.ne.u32 %__consan_q, %__consan_x, 0;
"""


def _blocks(work: Work | None) -> bool:
    return work is not None and work.row.family in _BLOCKING and work.row.action != "arrive"


def _count_of(work: Work) -> tuple[int, int] | None:
    """The number and the thread count of a barrier with a count for several warps, where the text gives both."""
    if work.row.family != "barrier":
        return None
    barrier, count = operand_of(work, "barrier"), operand_of(work, "count")
    if not (isinstance(barrier, Immediate) and isinstance(count, Immediate)) or int(count.value) <= LANES:
        return None
    return int(barrier.value), int(count.value)
