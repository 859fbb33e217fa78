"""Relations between two instructions of a kernel that follow from its text: which can follow which, and what synchronises in between.

Plain data, so that `reports` can use it without reading PTX; `between` computes it from a module. Everything here is about one
thread: which instructions one thread can execute in which order. The shadow runtime decides about other threads.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Final, Protocol

from consan.dataclass import dataclass
from consan.instrument.isa import Row, fenced_spaces, row_of, shortened
from consan.instrument.isa.traits import OrderTraits
from consan.instrument.sites import Place, Site

Thread = tuple[int, int, int]

Threads = tuple[Thread | None, Thread | None]  # the threads of (1) and of (2)

_MASK: Final = 0xFFFFFFFF
_OPERATORS: Final[dict[str, Callable[..., int | None]]] = {
    "mov": lambda a: a,
    "cvt": lambda a: a,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mad": lambda a, b, c: a * b + c,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": lambda a: int(not a),  # of predicates only (`is_plain`)
    "shl": lambda a, b: a << min(b, 32),
    "shr": lambda a, b: None if _is_negative(a) else a >> min(b, 32),  # of a negative number it depends on the type
    "selp": lambda a, b, p: a if p else b,
    "setp.eq": operator.eq,
    "setp.ne": operator.ne,
    "setp.lt": operator.lt,
    "setp.le": operator.le,
    "setp.gt": operator.gt,
    "setp.ge": operator.ge,
}
_TYPES: Final = frozenset(("u32", "s32", "b32", "lo"))
_WIDENED: Final = _TYPES | {"u64", "s64"}  # of `cvt`, which keeps the low 32 bits


def is_plain(parts: tuple[str, ...]) -> bool:
    """Whether an opcode is arithmetic that `Value` computes: on 32-bit integers and on predicates."""
    name, rest = _split(parts)
    return name in _OPERATORS and (set(rest) == {"pred"} or (name != "not" and set(rest) <= (_WIDENED if name == "cvt" else _TYPES)))


def _split(parts: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    words = 2 if parts[0] == "setp" else 1
    return ".".join(parts[:words]), parts[words:]


def _is_negative(number: int) -> bool:
    return number > _MASK >> 1


@dataclass(frozen=True)
class Value:
    """An operand as arithmetic on constants and %tid. `operation` is an opcode, a register, or empty for a constant."""

    operation: str
    operands: tuple[Value, ...] = ()
    constant: int = 0

    def of(self, thread: Thread | None) -> int | None:
        """The value in a given thread; None if it cannot be computed."""
        if not self.operation:
            return self.constant & _MASK
        if self.operation.startswith("%tid."):
            return None if thread is None else thread["xyz".index(self.operation[-1])]
        name, rest = _split(tuple(self.operation.split(".")))
        numbers = [operand.of(thread) for operand in self.operands]
        known = [number for number in numbers if number is not None]
        if name not in _OPERATORS or len(known) < len(numbers):
            return None
        if name.startswith("setp") and "s32" in rest:
            known = [number - (_MASK + 1) if _is_negative(number) else number for number in known]
        result = _OPERATORS[name](*known)
        return None if result is None else int(result) & _MASK


@dataclass(frozen=True)
class SyncPoint(OrderTraits):
    """A synchronising instruction. Several of one source place (an unrolled loop) are one.

    `number` is the group count of a wait, the barrier of a `bar`, the mask of a `bar.warp.sync`, the
    parity of a wait for an mbarrier; `count` the threads of a `bar`.
    `always`: every path of its stretch executes it.
    """

    opcode: str
    place: Place
    number: Value | None = None
    count: Value | None = None
    always: bool = True

    @property
    def parts(self) -> tuple[str, ...]:
        """The opcode split at its dots."""
        return tuple(self.opcode.split("."))

    @property
    def row(self) -> Row:
        """Its row of the opcode table, with its traits."""
        return row_of(self)

    @property
    def short(self) -> str:
        """The opcode without the words that say nothing to a reader."""
        return shortened(self)

    @property
    def fenced(self) -> frozenset[str]:
        """The memories in which it orders generic accesses and those of copies; empty for all but such fences."""
        return fenced_spaces(self)

    @property
    def sem(self) -> str:  # type: ignore[override]
        """Its memory ordering."""
        return self.row.semantics(self.row.modifiers(self.parts)).sem

    @property
    def scope(self) -> str:  # type: ignore[override]
        """The threads between which it holds."""
        return self.row.semantics(self.row.modifiers(self.parts)).scope


@dataclass(frozen=True)
class Order:
    """Two accesses in program order. `swapped`: the second one given comes first.

    `carried`: (2) follows (1) only in the next iteration of a loop.
    """

    swapped: bool
    carried: bool = False


@dataclass(frozen=True)
class Stretches:
    """The synchronising instructions around two accesses, in program order. No stretch passes (1) or (2).

    `between` is on paths of any thread from (1) to (2); empty also if there is no path (`follows` tells). Each other stretch is on paths
    of the thread of its access: from the access to the next (1), (2) or end of the kernel, or from one of those to the access. If (2) can
    follow (1), `after_first` and `before_second` contain only what lies between them. `repeats`: (1) or (2) is in a loop, or one of them
    alone is in a loop that the compiler has unrolled.
    """

    follows: bool
    repeats: bool
    between: tuple[SyncPoint, ...] = ()
    before_first: tuple[SyncPoint, ...] = ()
    after_first: tuple[SyncPoint, ...] = ()
    before_second: tuple[SyncPoint, ...] = ()
    after_second: tuple[SyncPoint, ...] = ()


@dataclass(frozen=True)
class Signal:
    """An instruction that signals a barrier or writes shared memory, or waits at a barrier.

    `verb`: initialise, announce (bytes; `mbarrier.arrive.expect_tx` arrives as well), copy, arrive, wait, or write. `symbol`: the shared
    variable of the address, empty if unknown. `barrier`: the number of a named barrier. `number`: the count or the bytes, if constant.
    """

    verb: str
    opcode: str
    place: Place
    symbol: str = ""
    barrier: int | None = None
    number: int | None = None


@dataclass(frozen=True)
class Counted:
    """The thread count of a barrier, and the instruction that computes it; None if that is not known, or the count is a constant."""

    count: Value
    computed: Place | None = None


@dataclass(frozen=True)
class Stores:
    """The places at which a kernel writes a shared variable, each once, and the number of bytes that the access reads (0: unknown)."""

    places: tuple[Place, ...]
    bytes: int = 0


@dataclass(frozen=True)
class ValueUse:
    """The use of a value that an access loads or leaves. `end`: the first thing that follows from it and that matters: "store" (to
    memory that outlives the kernel), "branch", "address" or "copy"; empty: nothing does. `path`: the instructions up to there.
    `addresses`: the PTX lines of all accesses whose addresses follow from it through registers, and of the end of the path if it is one.
    """

    end: str
    path: tuple[Place, ...] = ()
    addresses: tuple[int, ...] = ()


@dataclass(frozen=True)
class Warp:
    """The lanes of a warp at an instruction, as masks: those that came, and those that are gone for ever. `threads`: of all 32 lanes."""

    came: int
    gone: int
    threads: tuple[Thread, ...]


@dataclass(frozen=True)
class UndefinedUse:
    """The use of a value that a shuffle takes from a lane that is not there. `end`: as in `ValueUse`.

    `lane` takes the value of `source` at `shuffle`, whose mask names it if `in_mask`; `by` uses at `used` what follows from it.
    """

    end: str
    shuffle: Place
    used: Place
    lane: int
    source: int
    by: int
    in_mask: bool = True


class Relations(Protocol):
    """The relations between a module's sites that follow from its text."""

    def order(self, one: Site, other: Site, barriers: str) -> Order | None:
        """The intended order of two accesses in a program that lacks a barrier; None if the text does not show it.

        One access in a loop is `carried` if no such barrier is between two iterations.
        `barriers`: the kind that would order them, of a "warp", a "cta" or a "cluster".
        """
        ...

    def signals(self, entry: str) -> tuple[Signal, ...]:
        """The instructions of a kernel that signal barriers or write shared variables, and the waits at barriers."""
        ...

    def follows(self, entry: str, line: int, later: int) -> bool | None:
        """Whether a thread of a kernel can execute the instruction of the PTX line `later` after that of `line`.

        None if the text does not tell.
        """
        ...

    def awaited_count(self, first: Site, second: Site) -> tuple[SyncPoint, SyncPoint] | None:
        """Where a thread adds to a counter between two accesses, and where it then waits for that counter, on every path to the second.

        Of the first thread of a CTA. None if the text shows no such pair.
        """
        ...

    def barrier_behind(self, entry: str, line: int, later: int) -> Place | None:
        """A barrier of the whole CTA that comes only after the instruction of a PTX line, and that every path to that of `later` passes.

        Then the second cannot execute before the first has. None if there is no such barrier, or the text does not tell.
        """
        ...

    def loop(self, entry: str, *lines: int) -> Place | None:
        """The innermost loop of a kernel around the instructions of some PTX lines: the branch that repeats it. None if there is none."""
        ...

    def counted(self, barrier: Site) -> Counted | None:
        """The thread count of a barrier; None if it has no such operand."""
        ...

    def updates(self, write: Site) -> frozenset[int]:
        """The PTX lines of the loads whose values a store puts back, changed, at the same address. In an unrolled loop: of all copies."""
        ...

    def checks(self, write: Site) -> frozenset[int]:
        """The PTX lines of the loads from the address of a store or an atomic operation that decide whether it is made (check, then act).

        A compare-and-swap looks itself.
        """
        ...

    def combines(self, write: Site) -> bool:
        """Whether a store puts back what one operation makes of the value that was loaded and another one, as an atomic operation can."""
        ...

    def keeps_extreme(self, write: Site) -> bool:
        """Whether a store is made only if its value is larger, or smaller, than the integer that was loaded from its address."""
        ...

    def summed_lanes(self, write: Site) -> int:
        """The bits of the lane's number over which lanes have summed the floating-point value of a store, each in its own order.

        Lanes whose numbers differ in no other bit store the same value, but for rounding. 0: the text does not show such a sum.
        """
        ...

    def exchanged(self, one: Site, other: Site) -> bool:
        """Whether the write of a lane needs what the lanes of its warp have exchanged of the values that they read."""
        ...

    def stores(self, access: Site) -> Stores | None:
        """The stores of the kernel to the shared variable that an access touches. None if the text does not show it."""
        ...

    def variable(self, access: Site) -> str:
        """The symbol of the shared variable from which the address of an access is computed; empty if the text does not show it."""
        ...

    def in_branches(self, first: Site, second: Site, threads: Threads, wait: int = 0) -> tuple[bool, bool]:
        """Whether (1) is in a branch that the thread of (2) does not enter, and the other way round. `wait`: its PTX line stands for (1).

        False, False also if (2) cannot follow (1) before the next iteration of a loop: then no place lies between the branches.
        """
        ...

    def value_use(self, access: Site, threads: Collection[Thread]) -> ValueUse | None:
        """The use of the value that these threads load in an access; of what it leaves in memory, if it only writes.

        None if the text does not show it.
        """
        ...

    def is_first_guess(self, access: Site) -> bool:
        """Whether the value of a load is a first guess for a compare-and-swap of the same bytes, and goes nowhere else."""
        ...

    def undefined_use(self, entry: str, line: int, warp: Warp) -> UndefinedUse | None:
        """A certain use of a value that a warp takes, at the shuffle of a PTX line or behind it, from a lane that is not there."""
        ...

    def certain_shuffles(self, entry: str) -> tuple[int, ...]:
        """The PTX lines of the shuffles of a kernel that all of its threads come to."""
        ...

    def stretches(self, first: Site, second: Site, threads: Threads) -> Stretches | None:
        """The synchronisation around (1) and (2), for their threads; None if the text does not show it."""
        ...
