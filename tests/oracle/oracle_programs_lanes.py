"""Random programs of barriers and collectives in branches and loops, some divergent and some that only look so (R-BAR1).

A branch or loop of whole warps has barriers of exactly these; one of single lanes has barriers of all, which is divergent, or collectives
of a mask that fits or does not. Lanes may leave early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import draws as st
from oracle_programs import FULL, Guard, Operation, Part, Program, accesses
from oracle_programs_control import TRIPS, UNEVEN, Branch, Loop

WARPS = 3
KINDS = ("access", "access", "point", "point", "uniform", "uniform", "lanes", "lanes", "even", "uneven", "leave")
LANES = (
    (Guard("lane", "lt", 16), 0xFFFF),
    (Guard("lane", "ge", 16), 0xFFFF0000),
    (Guard("lane", "eq", 5), 0x20),
    (Guard("lane", "ne", 0), 0xFFFFFFFE),
)
COLLECTIVES = (
    "shfl.sync.idx.b32 %r5, %x0, 0, 31, {m};",
    "vote.sync.ballot.b32 %r5, %p1, {m};",
    "match.any.sync.b32 %r5, %x0, {m};",
    "redux.sync.add.u32 %r5, %x0, {m};",
    "bar.warp.sync {m};",
)
DONE = Operation(("st.global.u32 [%out], %x1;",))  # so that no lane that passes something by just ends


class _Maker:
    def __init__(self, draw: Any) -> None:
        self.draw, self.numbers, self.labels = draw, iter(range(1, 16)), 0

    def label(self) -> str:
        """A label that no other part has."""
        self.labels += 1
        return f"{{n}}_{self.labels}"

    def collective(self, mask: int) -> Operation:
        """An instruction with a member mask."""
        return Operation((self.draw(st.sampled_from(COLLECTIVES)).replace("{m}", hex(mask)),))

    def point(self, warps: int) -> Part:
        """What all lanes of the first `warps` warps must come to."""
        kind = self.draw(st.sampled_from(["full", "named", "collective"]))
        number = next(self.numbers, None) if kind == "named" else None
        if number is not None:
            wait = (
                f"bar.red.popc.u32 %r5, {number}, {32 * warps}, %p1;" if self.draw(st.booleans()) else f"bar.sync {number}, {32 * warps};"
            )
            return Operation((wait,))
        return FULL if kind == "full" and warps == WARPS else self.collective(0xFFFFFFFF)

    def body(self, make: Callable[[], Part], depth: int = 0) -> tuple[Part, ...]:
        """A point among accesses, perhaps in one more branch."""
        around = [self.draw(accesses()) for _ in range(self.draw(st.integers(0, 1)))]
        inner: Part = make()
        if depth == 0 and self.draw(st.integers(0, 3)) == 0:
            guard = self.draw(st.sampled_from([LANES[0][0], Guard("trips", "lt", 9), Guard("trips", "ge", 9)]))
            inner = Branch(guard, self.body(make, 1), (), self.label())
        return (*around, inner, *([self.draw(accesses())] if self.draw(st.booleans()) else []))

    def uniform(self) -> Part:
        """A branch of the first warps; barriers may be on both of its sides."""
        count = self.draw(st.integers(1, WARPS - 1))
        other = self.body(lambda: self.collective(0xFFFFFFFF)) if self.draw(st.booleans()) else ()
        return Branch(Guard("warp", "lt", count), self.body(lambda: self.point(count)), other, self.label())

    def lanes(self) -> Part:
        """A branch of some lanes, with a collective that fits, or with any point."""
        guard, mask = self.draw(st.sampled_from(LANES))
        fits = self.draw(st.integers(0, 3)) > 0
        other = self.body(lambda: self.collective(~mask & 0xFFFFFFFF)) if fits and self.draw(st.booleans()) else ()
        return Branch(guard, self.body(lambda: self.collective(mask) if fits else self.point(WARPS), int(fits)), other, self.label())

    def loop(self, uneven: bool) -> Part:
        """A loop with a point; where the lanes go round it differently often it is divergent."""
        body = self.body(lambda: self.point(WARPS), 1)
        return Loop("%trips", body, self.label(), UNEVEN) if uneven else Loop(str(TRIPS), body, self.label())

    def part(self, kind: str) -> Part:
        """One step."""
        if kind == "access":
            access: Part = self.draw(accesses())
            return access
        if kind in ("even", "uneven"):
            return self.loop(kind == "uneven" and self.draw(st.integers(0, 2)) == 0)
        if kind == "leave":
            who = st.sampled_from([Guard("lane", "eq", 7), Guard("lane", "ge", 24), Guard("thread", "lt", 32), Guard("thread", "ge", 80)])
            return Operation(("{g}ret;",), self.draw(who)) if self.draw(st.integers(0, 2)) == 0 else FULL
        return {"point": lambda: self.point(WARPS), "uniform": self.uniform, "lanes": self.lanes}[kind]()


@st.composite
def lanes(draw: Any) -> Program:
    """Barriers and collectives that all lanes of a warp reach, or not."""
    maker = _Maker(draw)
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6))
    start = Operation(("mov.u32 %trips, 1;",))
    return Program(WARPS, (start, *(maker.part(kind) for kind in kinds), DONE))
