"""Random programs of clusters of two CTAs: each touches the other's shared memory, arrives at its mbarriers, and sends it data.
In others one warp of each, or of one, ends before the rest.

Both CTAs run the same operations, some of them only one of the two: so every phase of an mbarrier is arrived at in full in both. Before
arrivals at the peer's barriers both have waited for the phase before, and a relaxed barrier of the cluster says so, which orders no data.
What one thread does and another thread's wait depends on are mbarriers and barriers alone: of programs with fences the accesses are weak,
or a flag might be one by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import draws as st
from oracle_programs import BUFFER, FULL, MBARS, REGISTERS, SINKS, WIDTHS, Guard, Operation, Part, Place, Program, places, warp_barriers
from oracle_programs_async import BARS, Maker, Style, init, wait_for

CTAS = 2
THREADS = 64  # of a CTA
PEER_BARS = [f"[%pbars+{8 * k}]" for k in range(MBARS)]
KINDS = (
    *("access",) * 4, *("full", "warp", "fence", "meet", "meet", "split", "relaxed", "await", "await", "refill", "refill"),
    *("signal", "arrive", "handover", "handover", "put", "put", "push", "multicast", "store", "drain"),
)  # fmt: skip
ARRIVE, WAIT = "barrier.cluster.arrive{}.aligned;", "barrier.cluster.wait.aligned;"
MEET = Operation((ARRIVE.format(""), WAIT))
MEET_RELAXED = Operation((ARRIVE.format(".relaxed"), WAIT))
CLEAR = (Operation(("{g}st.shared.v2.u32 [%r1], {%x0, %x1};",), Guard("thread", "lt", 32), Place(0, 0, 31, 8)), FULL)
FENCES = ("fence.acq_rel.cluster;", "fence.acq_rel.cta;")
PROXY_FENCES = ("fence.proxy.async;", "fence.proxy.async.shared::cluster;", "fence.proxy.async.shared::cta;")
ATOMICS, RELAXED = ("red", "atom"), ("ld.relaxed", "st.relaxed")
SENT = (
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %x0, {bar};",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %x1, {bar};",
)
SIGNALS = (*(".release.cluster",) * 4, "", ".release.cta", ".relaxed.cluster")
WAITS = (*(".acquire.cluster",) * 4, "", ".relaxed.cluster")


@dataclass(frozen=True)
class Split:
    """An arrival at the barrier of the cluster, what threads do before they wait, and the wait."""

    relaxed: bool
    body: tuple[Part, ...]

    def ptx(self) -> list[str]:
        """All lines."""
        return [ARRIVE.format(".relaxed" if self.relaxed else ""), *(line for part in self.body for line in part.ptx()), WAIT]

    def simpler(self) -> list[Part]:
        """With one part less between the two."""
        return [replace(self, body=self.body[:k] + self.body[k + 1 :]) for k in range(len(self.body))]


def guards() -> st.SearchStrategy[Guard]:
    """Everybody, a CTA, a warp of both, a few lanes, or a single thread: of both, or of one (`who` counts through the cluster)."""
    return st.one_of(
        st.just(Guard()),
        st.sampled_from([Guard("rank", "eq", 0), Guard("rank", "eq", 0), Guard("rank", "eq", 1)]),
        st.builds(Guard, st.just("lane"), st.sampled_from(["eq", "lt"]), st.integers(1, 31)),
        st.builds(Guard, st.just("warp"), st.just("eq"), st.integers(0, 1)),
        st.builds(Guard, st.just("thread"), st.sampled_from(["eq", "lt"]), st.integers(0, THREADS - 1)),
        st.builds(Guard, st.just("who"), st.sampled_from(["eq", "lt", "ge"]), st.integers(0, CTAS * THREADS - 1)),
    )


@st.composite
def accesses(draw: Any, strong: tuple[str, ...] = ()) -> Operation:
    """A load, a store or one of the strong accesses given, of one's own shared memory or the peer's."""
    far = draw(st.booleans())
    what = draw(st.sampled_from(["ld", "ld", "st", "st", *strong]))
    width = draw(st.sampled_from([1, 2, 4, 4, 4, 8, 16])) if what in ("ld", "st") else 4
    scope = draw(st.sampled_from(["cta", "cluster", "cluster", "cluster"] if far else ["cta", "cluster"]))
    space = "shared::cluster" if far else "shared::cta"
    line = {
        "ld": f"ld.{space}.{WIDTHS[width]} {SINKS[width]}, [%r1];",
        "st": f"st.{space}.{WIDTHS[width]} [%r1], {REGISTERS[width]};",
        "red": f"red.relaxed.{scope}.{space}.add.u32 [%r1], %x1;",
        "atom": f"atom.relaxed.{scope}.{space}.exch.b32 %r5, [%r1], %x1;",
        "ld.relaxed": f"ld.relaxed.{scope}.{space}.u32 %r5, [%r1];",
        "st.relaxed": f"st.relaxed.{scope}.{space}.u32 [%r1], %x0;",
    }[what]
    return Operation((f"{{g}}{line}",), draw(guards()), replace(draw(places(width)), base="%peer" if far else "%buf"))


class _Maker(Maker):
    """Makes programs of two CTAs. The barriers count the arrivals of one CTA's warps, or of one thread."""

    def __init__(self, draw: Any, style: Style) -> None:
        super().__init__(draw, style)
        self.strong = draw(st.sampled_from([(), (), ATOMICS, RELAXED]))
        self.started = False  # whether each CTA knows that the other one is there, with its mbarriers

    def program(self) -> Program:
        """All of it; mostly nobody begins before all have started, nor ends before all are done."""
        draw = self.draw
        parts: list[Part] = [*draw(st.sampled_from([(), CLEAR, CLEAR])), init([bar.count() for bar in self.bars])]
        start = draw(st.sampled_from([(MEET,)] * 6 + [(MEET_RELAXED,)] * 3 + [()]))
        parts, self.started = [*parts, *start], bool(start)
        density = draw(st.sampled_from([0, 1, 2, 3, 4]))
        for step, kind in enumerate(draw(st.lists(st.sampled_from(self.style.kinds), min_size=3, max_size=self.style.most))):
            parts += self.parts(kind, f"{{n}}_{step}")
            if draw(st.integers(0, 3)) < density:
                parts.append(MEET)
        ending = draw(st.sampled_from([(MEET,), (MEET_RELAXED,), (MEET_RELAXED,), (MEET_RELAXED,), ()]))
        return Program(self.warps, (*parts, *(self.ending() if ending else self.waits()), *ending))

    def waits(self) -> Iterator[Part]:
        """For the last phase of each barrier: whoever arrived there did so before the end."""
        for k, bar in enumerate(self.bars):
            if bar.phases:
                yield wait_for(k, bar.phases - 1, Guard(), f"{{n}}_last{k}", self.draw(st.sampled_from(WAITS)))

    def access(self) -> Operation:
        """An access of this program."""
        found: Operation = self.draw(accesses(self.strong))
        return found

    def make_access(self, number: str) -> Iterator[Part]:
        """A load, a store or an atomic."""
        yield self.access()

    def make_warp(self, number: str) -> Iterator[Part]:
        """A barrier of a warp, or of some of its lanes."""
        yield self.draw(warp_barriers())

    def make_fence(self, number: str) -> Iterator[Part]:
        """A fence of all threads or of one."""
        line = self.draw(st.sampled_from(PROXY_FENCES if self.strong else (*FENCES, *PROXY_FENCES)))
        yield Operation((f"{{g}}{line}",), self.draw(st.sampled_from([Guard(), Guard(), Guard("thread", "eq", 0)])))

    def make_meet(self, number: str) -> Iterator[Part]:
        """A barrier of the cluster."""
        yield MEET

    def make_relaxed(self, number: str) -> Iterator[Part]:
        """A barrier of the cluster that publishes nothing, or what a fence before it does."""
        yield MEET_RELAXED

    def make_split(self, number: str) -> Iterator[Part]:
        """A barrier of the cluster with accesses between arrival and wait."""
        body = tuple(self.access() for _ in range(self.draw(st.integers(1, 2))))
        yield Split(self.draw(st.sampled_from([False, False, True])), body)

    def make_await(self, number: str) -> Iterator[Part]:
        """A wait for the last phase, by some threads."""
        which = self.draw(st.integers(0, MBARS - 1))
        if self.bars[which].phases:
            yield wait_for(which, self.bars[which].phases - 1, self.draw(guards()), number, self.draw(st.sampled_from(WAITS)))

    def make_refill(self, number: str) -> Iterator[Part]:
        """Wait and read: what a consumer does."""
        which = self.draw(st.integers(0, MBARS - 1))
        if self.bars[which].phases:
            yield wait_for(which, self.bars[which].phases - 1, Guard(), number, self.draw(st.sampled_from(WAITS)))
            yield self.access()

    def make_signal(self, number: str) -> Iterator[Part]:
        """A phase of the peer's barrier."""
        which = self.draw(st.integers(0, MBARS - 1))
        yield from self.met(which, number)
        if self.draw(st.booleans()):
            yield Operation(("bar.warp.sync 0xffffffff;",))
        yield from self._signal(which)

    def _signal(self, which: int) -> Iterator[Part]:
        bar, sem = self.bars[which], self.draw(st.sampled_from(SIGNALS))
        bar.phases += 1
        who = Guard("thread" if bar.warps == 1 else "lane", "eq", 0)
        yield Operation((f"{{g}}mbarrier.arrive{sem}.shared::cluster.b64 _, {PEER_BARS[which]};",), who)

    def make_handover(self, number: str) -> Iterator[Part]:
        """Data for the peer, a signal, a wait, and a look at them: right but for a scope, a missing barrier or an order, perhaps."""
        draw, place = self.draw, self._far()
        which = draw(st.integers(0, MBARS - 1))
        yield from self.met(which, number)
        yield Operation(("{g}st.shared::cluster.u32 [%r1], %x0;",), draw(guards()), place)
        if draw(st.integers(0, 4)):
            yield FULL
        yield from self._signal(which)
        yield wait_for(which, self.bars[which].phases - 1, Guard(), number, draw(st.sampled_from(WAITS)))
        yield Operation(("{g}ld.shared::cta.u32 %r5, [%r1];",), draw(guards()), replace(place, base="%buf"))

    def make_put(self, number: str) -> Iterator[Part]:
        """A phase of asynchronous stores to the peer, or of reductions there."""
        draw, warps = self.draw, self.warps
        count = draw(st.integers(1, 32 * warps))
        guard, many = draw(
            st.sampled_from([(Guard(), 32 * warps), (Guard("thread", "eq", count - 1), 1), (Guard("thread", "lt", count), count)])
        )
        line = draw(st.sampled_from(SENT))
        yield from self._sent(number, 4 * many, lambda bar: Operation((f"{{g}}{line.replace('{bar}', bar)}",), guard, self._far()))

    def _far(self) -> Place:
        found: Place = self.draw(places(4))
        return replace(found, base="%peer")

    def make_push(self, number: str) -> Iterator[Part]:
        """A phase of a bulk copy to the peer, whose source is one's own."""
        (at, size), (to, _) = self.bulk_range(), self.bulk_range()
        to = min(to, BUFFER - size)
        copy = "{{g}}cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%peer+{to}], [%buf+{at}], {size}, {bar};"
        thread = Guard("thread", "eq", self.draw(st.sampled_from([0, 0, 1])))
        yield from self._sent(number, size, lambda bar: Operation((copy.format(to=to, at=at, size=size, bar=bar),), thread))

    def _sent(self, number: str, nbytes: int, send: Any) -> Iterator[Part]:
        """A phase whose bytes come from the peer: all warps' arrivals are the receiver's own."""
        which = self.draw(st.integers(0, MBARS - 1))
        yield from self.met(which, number)
        yield from self._expect(which, nbytes)
        yield send(PEER_BARS[which])

    def _expect(self, which: int, nbytes: int) -> Iterator[Part]:
        bar = self.bars[which]
        bar.phases += 1
        yield Operation((f"{{g}}mbarrier.arrive.expect_tx.shared::cta.b64 %token, {BARS[which]}, {nbytes};",), Guard("thread", "eq", 0))
        if bar.warps > 1:
            others = ("setp.ne.u32 %p0, %thread, 0;", "setp.eq.and.u32 %p0, %lane, 0, %p0;")
            yield Operation((*others, f"@%p0 mbarrier.arrive.shared::cta.b64 %token, {BARS[which]};"))

    def make_multicast(self, number: str) -> Iterator[Part]:
        """A phase of a bulk load that one CTA issues for both."""
        which = self.draw(st.integers(0, MBARS - 1))
        at, size = self.bulk_range()
        yield from self.met(which, number)
        yield from self._expect(which, size)
        words = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        guard = Guard("who", "eq", self.draw(st.sampled_from([0, 0, THREADS])))
        yield Operation((f"{{g}}{words} [%buf+{at}], [%in], {size}, {BARS[which]}, 3;",), guard)

    def met(self, which: int, number: str) -> Iterator[Part]:
        """The phase rule at the peer's barrier: both have waited for the phase before, and each knows that of the other."""
        yield from self.caught_up(which, number)
        if self.bars[which].phases or not self.started:
            self.started = True
            yield MEET_RELAXED


class _EndingMaker(_Maker):
    """Makes programs in which one warp ends, of a CTA or of each, while the others go on to barriers of the cluster."""

    def __init__(self, draw: Any, style: Style) -> None:
        super().__init__(draw, style)
        self.strong = ()
        self.ends = draw(st.sampled_from([[Guard("warp", "eq", 1)], [Guard("who", "ge", CTAS * THREADS - 32), Guard("who", "lt", 32)]]))

    def make_end(self, number: str) -> Iterator[Part]:
        """The end of a warp."""
        if self.ends:
            yield Operation(("{g}ret;",), self.ends.pop())


@st.composite
def cluster_ending(draw: Any) -> Program:
    """Accesses to a peer's shared memory, barriers of the cluster, and warps that end before the others."""
    kinds = (*("access",) * 6, *("meet",) * 3, "relaxed", "split", "warp", "fence", "end", "end")
    return _EndingMaker(draw, Style(kinds, warps=(2,), most=14)).program()


@st.composite
def clusters(draw: Any) -> Program:
    """Accesses to a peer's shared memory, barriers of the cluster, arrivals, stores and copies at the peer's mbarriers."""
    return _Maker(draw, Style(KINDS, warps=(1, 2, 2), most=12)).program()
