"""A run has nothing wrong that a run which covers it has not, and schedules that differ in nothing that matters have the same order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import oracle_order
import pytest
from draws import examples
from oracle_judge import Judge
from oracle_order import Order
from oracle_passes import alone, check, exact, holds_for_covered, order_of
from oracle_run import start
from oracle_strategies import batches
from oracle_trace import Trace, recording
from oracle_verdict import Verdict

import consan
from consan.backends.virtual import VirtualBackend

SCHEDULES = 6


def traces(ptx: str, grid: int, block: int, schedules: int = SCHEDULES) -> Iterator[Trace]:
    """A launch in several schedules."""
    kernel, backend = consan.Kernel(ptx), VirtualBackend()
    with recording() as trace:
        handle = backend.load(ptx)
        for number in range(schedules):
            trace.waves.clear()
            arrays = [np.arange(4096, dtype=np.int32), np.zeros(4096, np.int32)]
            start(handle, kernel, grid, block, arrays[: len(kernel.function.params)], backend=backend, seed=number)
            yield trace


def runs(ptx: str, grid: int, block: int) -> Iterator[tuple[Order | None, Verdict]]:
    """The order of each CTA, and the exact verdict on it, in several schedules."""
    for trace in traces(ptx, grid, block):
        for one in alone(trace):
            yield order_of(one), exact(one)


def told(verdict: Verdict) -> object:
    """What a run's verdict says."""
    return {pair: found.severity for pair, found in verdict.pairs.items()}, verdict.uninitialized


def errors(verdict: Verdict) -> set[object]:
    """What is wrong."""
    return {*(pair for pair, found in verdict.pairs.items() if found.severity == "error"), *verdict.uninitialized}


def wrong(verdict: Verdict) -> object:
    """All that is wrong, barriers included."""
    return errors(verdict), verdict.kinds, verdict.divergent


SLOW = ("ending", "matrix")


@pytest.mark.parametrize(
    "strategy",
    ["synchronous", "with_copies", "asynchronous", "divergent", *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)],
)
def test_same_order_same_verdict(strategy: str) -> None:
    judged, merged = 0, 0
    for batch in examples(batches(strategy, 2), 19, 4):
        found = [(order, verdict) for order, verdict in runs(batch.ptx, batch.grid, batch.threads) if order is not None]
        judged += len(found)
        for k, (order, verdict) in enumerate(found):
            covering = [mine for j, (other, mine) in enumerate(found) if j != k and other.covers(order)]
            merged += bool(covering)
            for mine in filter(holds_for_covered, covering):
                assert errors(verdict) <= errors(mine)
                assert verdict.pairs.keys() <= mine.pairs.keys()
    assert merged > judged // 2, "an order that every run has for itself is good for nothing"


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "orders").glob("*.ptx")), ids=lambda path: path.stem)
def test_what_is_in_no_order_is_judged_each_time(path: Path) -> None:
    """Kernels whose runs of one order, or of one that covers the other, have different verdicts."""
    judge, verdicts = Judge(), []
    for trace in traces(path.read_text(), 1, 64, 40):
        verdicts.append(wrong(check(trace, merged=False)))
        assert wrong(judge.verdict(trace)) == verdicts[-1]
    assert any(one != verdicts[0] for one in verdicts)


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
