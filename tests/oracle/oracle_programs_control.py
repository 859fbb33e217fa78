"""Random programs with branches and loops: threads of one warp that do different things, or the same for different numbers of times.

Bodies that only some lanes run have accesses and arrivals; loops that all threads run equally often have barriers and whole phases of
mbarriers, too. A phase is arrived at by all threads here, in the two branches of a condition or in a loop whose length depends on the lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import draws as st
from oracle_programs import BUFFER, FULL, MBARS, Guard, Operation, Part, Program, accesses, copies, guards, warp_barriers
from oracle_programs_async import BARS, Barrier, Maker, Style

KINDS = (
    *("access",) * 3,
    *("full", "warp", "branch", "branch", "loop", "loop", "split", "uneven", "rounds", "await", "load", "store", "drain"),
)
STEP = 16  # bytes by which the accesses of a loop move on
TRIPS = 3


def _all(parts: tuple[Part, ...]) -> list[str]:
    return [line for part in parts for line in part.ptx()]


def _without_one(parts: tuple[Part, ...]) -> list[tuple[Part, ...]]:
    return [parts[:k] + parts[k + 1 :] for k in range(len(parts))]


@dataclass(frozen=True)
class Branch:
    """Threads of the guard run one body, all others the other."""

    guard: Guard
    body: tuple[Part, ...]
    other: tuple[Part, ...]
    label: str

    def ptx(self) -> list[str]:
        """Two bodies that meet again."""
        start = [*self.guard.ptx(), f"@!%p1 bra B{self.label};"]
        return [*start, *_all(self.body), f"bra E{self.label};", f"B{self.label}:", *_all(self.other), f"E{self.label}:"]

    def simpler(self) -> list[Part]:
        """With one part less."""
        bodies: list[Part] = [replace(self, body=body) for body in _without_one(self.body)]
        return bodies + [replace(self, other=other) for other in _without_one(self.other)]


@dataclass(frozen=True)
class Loop:
    """A body that is run so many times: a number, or instructions that leave one in %trips."""

    trips: str
    body: tuple[Part, ...]
    label: str
    before: tuple[str, ...] = ()

    def ptx(self) -> list[str]:
        """A loop with its test at the end."""
        start = [*self.before, "mov.u32 %loop, 0;", f"L{self.label}:"]
        return [*start, *_all(self.body), "add.u32 %loop, %loop, 1;", f"setp.lt.u32 %p1, %loop, {self.trips};", f"@%p1 bra L{self.label};"]

    def simpler(self) -> list[Part]:
        """With one part less."""
        return [replace(self, body=body) for body in _without_one(self.body)]


UNEVEN = (f"and.b32 %trips, %lane, {TRIPS - 1};", "add.u32 %trips, %trips, 1;")  # lanes run once and three times


@dataclass
class _Threads(Barrier):
    """An mbarrier at which every thread arrives, twice on average if `uneven`."""

    uneven: bool = False

    def count(self) -> int:
        return (64 if self.uneven else 32) * self.warps


class _Maker(Maker):
    def __init__(self, draw: Any, style: Style) -> None:
        super().__init__(draw, style)
        self.bars[:2] = [_Threads(self.warps), _Threads(self.warps, uneven=True)]
        self.single = list(range(2, MBARS))

    def moving(self) -> Operation:
        """An access of a loop's body."""
        found: Operation = self.draw(accesses())
        place = found.place
        assert place is not None
        room = BUFFER - STEP * TRIPS
        if place.offset + place.mask * place.stride + 16 > room or not self.draw(st.booleans()):
            return found
        return replace(found, place=replace(place, step=STEP))

    def body(self) -> tuple[Part, ...]:
        """What some threads may do by themselves."""
        return tuple(self.draw(st.lists(st.one_of(accesses(), copies()), min_size=1, max_size=2)))

    def make_branch(self, number: str) -> Iterator[Part]:
        """A condition on lanes or warps."""
        guard = self.draw(guards().filter(lambda one: bool(one.of)))
        yield Branch(guard, self.body(), self.body() if self.draw(st.booleans()) else (), number)

    def make_loop(self, number: str) -> Iterator[Part]:
        """A loop of all threads with barriers in it, or one of some threads, or of a length that depends on the lane."""
        kind = self.draw(st.sampled_from(["even", "uneven", "guarded"]))
        inside = tuple(self.moving() for _ in range(self.draw(st.integers(1, 2))))
        if kind == "even":
            more = self.draw(st.lists(st.one_of(st.just(FULL), warp_barriers()), max_size=2))
            yield Loop(str(TRIPS), (*inside, *more), number)
        elif kind == "uneven":
            yield Loop("%trips", inside, number, UNEVEN)
        else:
            guard = self.draw(guards().filter(lambda one: bool(one.of)))
            yield Branch(guard, (Loop(str(TRIPS), inside, f"{number}i"),), (), number)

    def arrive(self, which: int) -> Operation:
        """An arrival of whoever comes there."""
        return Operation((f"mbarrier.arrive.shared.b64 %token, {BARS[which]};",))

    def make_split(self, number: str) -> Iterator[Part]:
        """A phase at which threads arrive in two branches, each after something else."""
        yield from self.caught_up(0, number)
        self.bars[0].phases += 1
        guard = self.draw(guards().filter(lambda one: bool(one.of)))
        yield Branch(guard, (*self.body(), self.arrive(0)), (*self.body(), self.arrive(0)), number)

    def make_uneven(self, number: str) -> Iterator[Part]:
        """A phase at which some threads arrive more often than others."""
        yield from self.caught_up(1, number)
        self.bars[1].phases += 1
        yield Loop("%trips", (self.moving(), self.arrive(1)), number, UNEVEN)

    def make_rounds(self, number: str) -> Iterator[Part]:
        """Phases in a loop: everybody accesses, arrives, and waits for the others."""
        yield from self.caught_up(0, number)
        first = self.bars[0].phases
        self.bars[0].phases += TRIPS
        wait = Operation(
            (
                f"add.u32 %r2, %loop, {first & 1};", "and.b32 %r2, %r2, 1;",
                f"R{number}:", f"mbarrier.try_wait.parity.shared.b64 %done, {BARS[0]}, %r2;", f"@!%done bra R{number};",
            )
        )  # fmt: skip
        yield Loop(str(TRIPS), (self.moving(), self.arrive(0), wait, self.moving()), number)


@st.composite
def divergent(draw: Any) -> Program:
    """Branches and loops around accesses, copies and arrivals."""
    return _Maker(draw, Style(KINDS, most=10)).program()
