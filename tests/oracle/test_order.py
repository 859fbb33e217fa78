"""Runs that have the same order have the same verdict, and schedules that differ in nothing that matters have the same order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import oracle_order
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from oracle_order import Order
from oracle_passes import alone, check, order_of
from oracle_programs import Batch
from oracle_run import start
from oracle_strategies import batches
from oracle_trace import recording
from oracle_verdict import Verdict

import consan
from consan.backends.virtual import VirtualBackend

SCHEDULES = 12


def runs(ptx: str, grid: int, block: int) -> Iterator[tuple[Order | None, Verdict]]:
    """The order of each CTA, and the verdict on it, in several schedules."""
    kernel, backend = consan.Kernel(ptx), VirtualBackend()
    with recording() as trace:
        handle = backend.load(ptx)
        for number in range(SCHEDULES):
            trace.waves.clear()
            arrays = [np.arange(4096, dtype=np.int32), np.zeros(4096, np.int32)]
            start(handle, kernel, grid, block, arrays[: len(kernel.function.params)], backend=backend, seed=number)
            for one in alone(trace):
                yield order_of(one), check(one, merged=False)


def told(verdict: Verdict) -> object:
    """What the order of a run may not change: which of two kinds a pair has where both are right is for the run to say."""
    return {pair: found.severity for pair, found in verdict.pairs.items()}, verdict.uninitialized, verdict.maybe_uninitialized


def errors(verdict: Verdict) -> set[object]:
    """What is wrong."""
    return {*(pair for pair, found in verdict.pairs.items() if found.severity == "error"), *verdict.uninitialized}


@pytest.mark.parametrize("strategy", ["synchronous", "with_copies", "asynchronous", "divergent", "ending"])
def test_same_order_same_verdict(strategy: str) -> None:
    judged, merged = 0, 0

    @seed(17)
    @settings(max_examples=6, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(batches(strategy, 2))
    def same(batch: Batch) -> None:
        nonlocal judged, merged
        known: list[tuple[Order, Verdict]] = []
        for order, verdict in runs(batch.ptx, batch.grid, batch.threads):
            judged += 1
            if order is None:
                continue
            covering = [found for other, found in known if other.covers(order)]
            merged += bool(covering)
            for found in covering:
                assert errors(verdict) <= errors(found)
            for found in (found for other, found in known if other.covers(order) and order.covers(other)):
                assert told(found) == told(verdict)
            known.append((order, verdict))

    same()
    assert merged > judged // 2, "an order that every run has for itself is good for nothing"


HANDED_ON = """
.version 8.0
.target sm_90a
.address_size 64
.shared .align 8 .b8 memory[64];
.visible .entry handed_on()
{
    .reg .pred %p<4>; .reg .b32 %r<8>;
    mov.u32 %r0, memory; mov.u32 %r1, %tid.x; mov.u32 %r4, 0;
    and.b32 %r5, %r1, 31;
    setp.ne.u32 %p1, %r5, 0;
    @%p1 bra DONE;
WAIT:
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p2, %r4, 8;
    @%p2 bra WAIT;
    setp.ge.u32 %p0, %r1, 32;
    @%p0 bra READER;
    st.shared.u32 [%r0], 1;
    st.release.cta.shared.u32 [%r0+4], 1;
    bra DONE;
READER:
    ld.acquire.cta.shared.u32 %r2, [%r0+4];
    ld.shared.u32 %r3, [%r0];
DONE:
    ret;
}
"""


PEEKED = """
.version 8.0
.target sm_90a
.address_size 64
.shared .align 8 .b8 memory[64];
.visible .entry peeked()
{
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<2>;
    mov.u32 %r0, memory; mov.u32 %r1, %tid.x; mov.u32 %r4, 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra MADE;
    mbarrier.init.shared.b64 [%r0+8], 1;
MADE:
    bar.sync 0;
    and.b32 %r5, %r1, 31;
    setp.ne.u32 %p1, %r5, 0;
    @%p1 bra DONE;
WAIT:
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p2, %r4, 8;
    @%p2 bra WAIT;
    setp.ge.u32 %p0, %r1, 32;
    @%p0 bra READER;
    st.shared.u32 [%r0], 1;
    mbarrier.arrive.shared.b64 %rd0, [%r0+8];
    bra DONE;
READER:
    mbarrier.test_wait.parity.shared.b64 %p3, [%r0+8], 0;
    ld.shared.u32 %r3, [%r0];
    mbarrier.test_wait.parity.shared.b64 %p3, [%r0+8], 0;
DONE:
    ret;
}
"""


def test_who_comes_first_is_another_order() -> None:
    """A flag that nobody waits for: where it is seen the data is in order."""
    verdicts: dict[int, object] = {}
    for order, verdict in runs(HANDED_ON, 1, 64):
        assert order is not None
        assert verdicts.setdefault(order.number, told(verdict)) == told(verdict)
    assert len({str(one) for one in verdicts.values()}) == len(verdicts) == 2


def test_each_edge_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what an acquire takes in, runs with other verdicts would have the same order."""
    monkeypatch.setattr(oracle_order.History, "_meet", lambda *_: None)
    found = list(runs(HANDED_ON, 1, 64))
    assert len({str(told(verdict)) for _, verdict in found}) == 2
    assert len({order.number for order, _ in found if order is not None}) == 1


def test_who_sees_it_later_covers_who_sees_it_earlier() -> None:
    found = {(not errors(verdict), order) for order, verdict in runs(PEEKED, 1, 64)}
    clean, racy = ([order for is_clean, order in found if order is not None and is_clean == way] for way in (True, False))
    assert clean
    assert racy
    assert all(late.covers(early) and not early.covers(late) for late in racy for early in clean)
