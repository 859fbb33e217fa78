"""Random programs of mbarriers, bulk copies, proxy fences and barriers.

Every phase of an mbarrier is arrived at by one operation: by lane 0 of each warp, or (bulk loads) also by one thread, which expects the
bytes of the copies that it issues. A wait is for the phase before, so its arrivals are on their way; whoever may arrive at a phase has
waited for the one before (the phase rule).

A `Style` says which operations there are, and how large the CTA and its buffer; oracle_programs_matrix.py and oracle_programs_control.py
have further ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import draws as st
from oracle_programs import BUFFER, CLEAR, FULL, MBARS, Guard, Operation, Part, Program, accesses, guards, named, warp_barriers

BARS = [f"[%bars+{8 * k}]" for k in range(MBARS)]
FENCES = ("fence.proxy.async;", "fence.proxy.async.shared::cta;", "fence.proxy.async.global;")
FREQUENT = (
    *("access",) * 4, *("full", "warp", "fence", "named", "drain", "refill"),
    *("arrive", "arrive", "load", "load", "await", "await", "store", "store"),
)  # fmt: skip


@dataclass(frozen=True)
class Style:
    """What programs of a kind have in common."""

    kinds: tuple[str, ...] = FREQUENT
    warps: tuple[int, ...] = (1, 2, 3, 4)
    windows: tuple[int, ...] = (0,)  # of BUFFER bytes, where accesses and copies go
    issuers: tuple[int, ...] = (0,)  # threads that issue loads
    clear: tuple[Operation, ...] = CLEAR
    most: int = 16  # operations


@dataclass
class Barrier:
    """An mbarrier as the generator follows it: how many warps arrive in each phase, and how many phases there were."""

    warps: int
    phases: int = 0

    def count(self) -> int:
        """Arrivals of a phase."""
        return self.warps


def init(counts: list[int]) -> Operation:
    """One thread makes the mbarriers; a barrier publishes them."""
    lines = [f"{{g}}mbarrier.init.shared.b64 {BARS[k]}, {count};" for k, count in enumerate(counts)]
    return Operation((*lines, "{g}fence.mbarrier_init.release.cluster;", "bar.sync 0;"), Guard("thread", "eq", 0))


def wait_for(bar: int, phase: int, guard: Guard, number: str, sem: str = "") -> Operation:
    """Wait until a phase is complete, in a loop."""
    label = f"W{number}"
    skip = (f"@!%p1 bra E{number};",) if guard.of else ()
    loop = (f"{label}:", f"mbarrier.try_wait.parity{sem}.shared.b64 %done, {BARS[bar]}, {phase & 1};", f"@!%done bra {label};")
    return Operation((*skip, *loop, f"E{number}:"), guard)


class Maker:
    """Makes the operations of one program, and follows its mbarriers."""

    def __init__(self, draw: Any, style: Style) -> None:
        self.draw, self.style = draw, style
        self.warps: int = draw(st.sampled_from(style.warps))
        self.bars = [Barrier(draw(st.sampled_from([1, self.warps]))) for _ in range(MBARS)]
        self.single: list[int] = list(range(MBARS))  # barriers at which single lanes arrive
        self.numbers = iter(range(1, 16))

    def program(self) -> Program:
        """All of it."""
        draw = self.draw
        parts: list[Part] = [*draw(st.sampled_from([(), *(self.style.clear,) * 3])), init([bar.count() for bar in self.bars])]
        density = draw(st.sampled_from([0, 0, 1, 2]))
        for step, kind in enumerate(draw(st.lists(st.sampled_from(self.style.kinds), min_size=3, max_size=self.style.most))):
            parts += self.parts(kind, f"{{n}}_{step}")
            if draw(st.integers(0, 3)) < density:
                parts.append(FULL)
        return Program(self.warps, (*parts, *self.ending()))

    def parts(self, kind: str, number: str) -> Iterator[Part]:
        """The operations of one step; `number` makes its labels."""
        found: Iterator[Part] = getattr(self, f"make_{kind}")(number)
        return found

    def ending(self) -> Iterator[Part]:
        """Mostly: wait for everything, so that nothing is in flight at the end."""
        if self.draw(st.integers(0, 5)):
            for k, bar in enumerate(self.bars):
                if bar.phases:
                    yield wait_for(k, bar.phases - 1, Guard(), f"{{n}}_end{k}")
            yield Operation(("cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;"))

    # Steps -----------------------------------------------------------------------------------------------------------

    def make_access(self, number: str) -> Iterator[Part]:
        """A load, a store or an atomic."""
        yield self.draw(accesses(self.style.windows))

    def make_full(self, number: str) -> Iterator[Part]:
        """A barrier of the CTA."""
        yield FULL

    def make_warp(self, number: str) -> Iterator[Part]:
        """A barrier of a warp, or of some of its lanes."""
        yield self.draw(warp_barriers())

    def make_named(self, number: str) -> Iterator[Part]:
        """A barrier of some warps."""
        free = next(self.numbers, None)
        yield FULL if free is None else self.draw(named(free, self.warps))

    def make_fence(self, number: str) -> Iterator[Part]:
        """A proxy fence, mostly of all threads."""
        guard = self.draw(st.sampled_from([Guard(), Guard(), Guard("thread", "eq", 0)]))
        yield Operation((f"{{g}}{self.draw(st.sampled_from(FENCES))}",), guard)

    def make_store(self, number: str) -> Iterator[Part]:
        """A bulk store by one thread."""
        offset, size = self.bulk_range()
        line = f"{{g}}cp.async.bulk.global.shared::cta.bulk_group [%out], [%buf+{offset}], {size};"
        yield Operation((line,), self.storer())

    def make_drain(self, number: str) -> Iterator[Part]:
        """Commit and wait, or only a wait."""
        draw, guard = self.draw, self.storer()
        read, pending = draw(st.sampled_from(["", ".read"])), draw(st.sampled_from([0, 0, 1]))
        lines = ("{g}cp.async.bulk.commit_group;", f"{{g}}cp.async.bulk.wait_group{read} {pending};")
        yield Operation(lines[draw(st.sampled_from([0, 0, 0, 1])) :], draw(st.sampled_from([guard, Guard()])))

    def make_arrive(self, number: str) -> Iterator[Part]:
        """A phase that threads complete."""
        draw, which = self.draw, self.draw(st.sampled_from(self.single))
        bar = self.bars[which]
        yield from self.caught_up(which, number)
        bar.phases += 1
        sem = draw(st.sampled_from(["", "", "", ".relaxed.cta"]))
        if draw(st.booleans()):
            yield Operation(("bar.warp.sync 0xffffffff;",))
        line = f"{{g}}mbarrier.arrive{sem}.shared.b64 %token, {BARS[which]};"
        yield Operation((line,), Guard("thread" if bar.warps == 1 else "lane", "eq", 0))

    def make_load(self, number: str) -> Iterator[Part]:
        """A phase of one or two bulk loads."""
        draw, which = self.draw, self.draw(st.sampled_from(self.single))
        bar = self.bars[which]
        yield from self.caught_up(which, number)
        bar.phases += 1
        issuer = draw(st.sampled_from(self.style.issuers))
        sizes, lines = self.copies_to(which)
        expect = f"{{g}}mbarrier.arrive.expect_tx.shared.b64 %token, {BARS[which]}, {sum(sizes)};"
        yield Operation((expect, *lines), Guard("thread", "eq", issuer))
        if bar.warps > 1:
            others = (f"setp.ne.u32 %p0, %thread, {issuer};", "setp.eq.and.u32 %p0, %lane, 0, %p0;")
            yield Operation((*others, f"@%p0 mbarrier.arrive.shared.b64 %token, {BARS[which]};"))

    def make_await(self, number: str) -> Iterator[Part]:
        """A wait for the last phase, by some threads."""
        which = self.draw(st.integers(0, MBARS - 1))
        bar = self.bars[which]
        if bar.phases:
            sem = self.draw(st.sampled_from(["", "", "", ".relaxed.cta"]))
            yield wait_for(which, bar.phases - 1, self.draw(guards()), number, sem)

    def make_refill(self, number: str) -> Iterator[Part]:
        """Wait and read: what a consumer does."""
        which = self.draw(st.integers(0, MBARS - 1))
        bar = self.bars[which]
        if bar.phases:
            yield wait_for(which, bar.phases - 1, Guard(), number)
            yield self.draw(accesses(self.style.windows))

    # Their parts -----------------------------------------------------------------------------------------------------

    def storer(self) -> Guard:
        """Who issues bulk stores and waits for them."""
        return Guard("thread", "eq", self.draw(st.sampled_from([0, 0, 0, 1, 32])))

    def bulk_range(self) -> tuple[int, int]:
        """Offset and size of a bulk copy."""
        size = self.draw(st.sampled_from([16, 16, 32, 64]))
        return self.draw(st.integers(0, (BUFFER - size) // 16)) * 16 + self.draw(st.sampled_from(self.style.windows)), size

    def copies_to(self, which: int) -> tuple[list[int], list[str]]:
        """Sizes and instructions of the loads of a phase."""
        ranges = [self.bulk_range() for _ in range(self.draw(st.sampled_from([1, 1, 2])))]
        load = "{{g}}cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%buf+{at}], [%in], {size}, {bar};"
        return [size for _, size in ranges], [load.format(at=at, size=size, bar=BARS[which]) for at, size in ranges]

    def caught_up(self, which: int, number: str) -> Iterator[Part]:
        """The phase rule: somebody has waited for a phase before arrivals at the next one, here all who may arrive."""
        if self.bars[which].phases:
            yield wait_for(which, self.bars[which].phases - 1, Guard(), f"{number}b")


@st.composite
def asynchronous(draw: Any) -> Program:
    """Accesses, barriers, mbarriers, bulk loads and stores, proxy fences."""
    return Maker(draw, Style()).program()
