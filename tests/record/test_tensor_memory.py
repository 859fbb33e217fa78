"""The checker's rules for tensor memory (SEMANTICS 4.4), each by a log in which it is broken and one in which it is kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from consan.checker.compiled.layouts import Status
from consan.checker.compiled.replay import History, Replayed, replay
from consan.instrument import effects
from consan.instrument.effects import WordValue
from consan.instrument.findings import Kind, Reason
from consan.instrument.record.text.templates import END, Template, tables
from consan.reports.verdict.speaking.raw import united

WINDOW, BYTES = 1024, 20480
BAR, OTHER_BAR, WORD, THIRD_BAR = 1024, 1032, 1040, 1048  # three mbarriers, and where addresses of tensor memory go
TILE = 2048  # operands
F16_128_64 = 0x08100010  # f16, D in f32, M = 128, N = 64
Step = tuple[int, ...]


class Program:
    """Logs of a CTA: each warp does what its list says. A step of one lane has the lane's number; -1: all lanes."""

    def __init__(self) -> None:
        self.templates: list[Template] = []

    def event(self, kind: type[effects.Effect], words: int = 1, **fields: Any) -> int:
        number = len(self.templates) + 1
        self.templates.append(Template(number, words, [kind(site=number, **fields)]))
        return number

    def replayed(self, *warps: list[tuple[int, Step]]) -> list[Replayed]:
        lanes = [[word for lane, step in warp if lane in (-1, number) for word in step] + [END] for warp in warps for number in range(32)]
        log = np.zeros((len(warps), 4 + max(map(len, lanes)), 32), np.uint32)
        for thread, words in enumerate(lanes):
            log[thread // 32, : len(words), thread % 32] = words
        history = History(log, len(lanes), WINDOW, BYTES)
        return [replay(tables(self.templates), history, descending=order) for order in (False, True)]


P = Program()
REQUEST = P.event(effects.TensorAllocRequest, 2, columns=WordValue(0, 1))
ALLOC = P.event(effects.TensorAlloc, 4, at=WordValue(0, 1), columns=WordValue(0, 2), cells=WordValue(0, 3))
DEALLOC = P.event(effects.TensorDealloc, 3, columns=WordValue(0, 1), cells=WordValue(0, 2))
RELINQUISH = P.event(effects.TensorRelinquish)
LD = P.event(effects.TensorLd, 2, at=WordValue(0, 1), columns=16, lanes=32)
ST = P.event(effects.TensorSt, 2, at=WordValue(0, 1), columns=16, lanes=32)
WAIT_LD, WAIT_ST = P.event(effects.TensorWait, what=1), P.event(effects.TensorWait, what=2)
MMA = P.event(effects.TensorMma, 8, at=WordValue(0, 1), operands=2)
CP = P.event(effects.TensorCp, 4, at=WordValue(0, 1), operands=2, rows=128, row_bytes=32, columns=8)
SHIFT = P.event(effects.TensorShift, 2, at=WordValue(0, 1))
COMMIT = P.event(effects.TensorCommit, 2, at=WordValue(0, 1), ctas=WordValue(1))
INIT = P.event(effects.MbarrierInit, 2, at=WordValue(0, 1), count=WordValue(1))
MBARRIER_WAIT = P.event(effects.MbarrierWait, 3, at=WordValue(0, 1), parity=WordValue(0, 2))
BARRIER = P.event(effects.CtaBarrier, waits=True)
WRITE = P.event(effects.Write, 2, at=WordValue(0, 1), bytes=4, element=4)
READ = P.event(effects.Read, 2, at=WordValue(0, 1), bytes=4, element=4)
FENCE = P.event(effects.ProxyFence, memories=1)
ARRIVE = P.event(effects.MbarrierArrive, 2, at=WordValue(0, 1), count=WordValue(1), relaxed=True)
RELAXED_WAIT = P.event(effects.MbarrierWait, 3, at=WordValue(0, 1), parity=WordValue(0, 2), relaxed=True)
BEFORE, AFTER = P.event(effects.TensorFence, after=0), P.event(effects.TensorFence, after=1)


def _all(*steps: Step) -> list[tuple[int, Step]]:
    return [(-1, step) for step in steps]


def _one(*steps: Step) -> list[tuple[int, Step]]:
    return [(0, step) for step in steps]


def _alloc(columns: int = 128, base: int = 0) -> list[tuple[int, Step]]:
    return _all((REQUEST, columns), (ALLOC, WORD, columns, base))


def _mma(d: int = 0, enable: int = 0, idesc: int = F16_128_64) -> Step:
    low, high = 0x00080000 | TILE >> 4, 0x00004010
    return (MMA, d, idesc, enable, low, high, low, high)


def _operands() -> list[tuple[int, Step]]:
    """Lane l writes the words of its part of the operands: 128 rows of 32 bytes."""
    return [(lane, (WRITE, TILE + 128 * lane + 4 * each)) for each in range(32) for lane in range(32)]


SETUP = _one((INIT, BAR), (INIT, OTHER_BAR), (INIT, THIRD_BAR)) + _alloc() + _operands() + _all((FENCE,), (BARRIER,))
OTHERS = _all((BARRIER,))
FREE = _all((BARRIER,), (DEALLOC, 128, 0))
GONE = _all((BARRIER,))


def _found(*warps: list[tuple[int, Step]], program: Program = P) -> set[tuple[str, str, int, int]]:
    done = program.replayed(*warps)
    assert {each.status for each in done} == {Status.OK}
    return set(_tuples(_united(done)))


def _united(done: Iterable[Replayed]) -> list[np.void]:
    return united([each.records for each in done])


def _tuples(records: Iterable[np.void]) -> Iterable[tuple[str, str, int, int]]:
    for one in records:
        yield Kind(int(one["kind"])).name, Reason(int(one["reason"])).name, int(one["site"]), int(one["other_site"])


def _wait(parity: int = 0, bar: int = BAR) -> Step:
    return (MBARRIER_WAIT, bar, parity)


PRODUCT = _one(_mma(), (COMMIT, BAR))


def test_a_product_that_is_waited_for() -> None:
    first = SETUP + PRODUCT + _all(_wait(), (LD, 0), (WAIT_LD,)) + FREE
    assert _found(first, OTHERS + _all(_wait(), (LD, 0), (WAIT_LD,)) + GONE) == set()


def test_a_load_that_does_not_wait_for_the_commit() -> None:
    first = SETUP + PRODUCT + _all(_wait()) + FREE
    found = _found(first, OTHERS + _all((LD, 0), (WAIT_LD,)) + GONE)
    assert ("MISSING_WAIT", "WAITED_NO_BARRIER", LD, MMA) in found or ("MISSING_WAIT", "NOT_WAITED", LD, MMA) in found
    assert {(kind, site) for kind, _, site, _ in found} == {("MISSING_WAIT", LD)}


LOADS = _all((LD, 0), (WAIT_LD,))
WAITED = _all(_wait())


def _kinds(*warps: list[tuple[int, Step]]) -> set[tuple[str, str, int]]:
    return {(kind, reason, site) for kind, reason, site, _ in _found(*warps)}


def _pairs(*warps: list[tuple[int, Step]]) -> set[tuple[str, int, int]]:
    return {(kind, site, other) for kind, _, site, other in _found(*warps)}


def test_a_commit_before_the_operation() -> None:
    first = SETUP + _one((COMMIT, BAR), _mma()) + WAITED + LOADS
    assert ("MISSING_WAIT", "NOT_COMMITTED", LD, MMA) in _found(first + FREE, OTHERS + GONE)


def test_a_commit_by_another_thread() -> None:
    first = SETUP + _one(_mma()) + [(1, (COMMIT, BAR))] + WAITED + LOADS
    assert ("MISSING_WAIT", "OTHER_ISSUER", LD, MMA) in _found(first + FREE, OTHERS + GONE)


def test_a_wait_for_a_phase_that_is_over() -> None:
    """The second product is handed over with the parity of the first."""
    again = _one(_mma(), (COMMIT, BAR))
    first = SETUP + PRODUCT + WAITED + again
    assert _pairs(first + _all(_wait(1)) + LOADS + FREE, OTHERS + GONE) == set()
    assert ("MISSING_WAIT", LD, MMA) in _pairs(first + _all(_wait(0)) + LOADS + FREE, OTHERS + GONE)


def test_a_barrier_is_no_completion() -> None:
    first = SETUP + PRODUCT + _all((BARRIER,), *[step for _, step in LOADS])
    assert ("MISSING_WAIT", LD, MMA) in _pairs(first + WAITED + FREE, OTHERS + _all((BARRIER,)) + GONE)


def test_the_chain_of_products_needs_no_wait() -> None:
    chain = _one(_mma(), _mma(enable=1), _mma(enable=1), (COMMIT, BAR))
    assert _found(SETUP + chain + WAITED + LOADS + FREE, OTHERS + GONE) == set()


def test_a_product_over_columns_that_are_being_loaded() -> None:
    again = _one(_mma(), (COMMIT, BAR))
    rest = _all(_wait(1)) + FREE
    first = SETUP + PRODUCT + WAITED
    assert _pairs(first + LOADS + again + rest, OTHERS + GONE) == set()
    assert ("MISSING_WAIT", MMA, LD) in _pairs(first + _all((LD, 0)) + again + _all((WAIT_LD,)) + rest, OTHERS + GONE)


def test_columns_handed_over_with_a_load_pending() -> None:
    """Warp 1 loads; warp 0 multiplies into the columns again behind a barrier."""
    again = _all((BARRIER,)) + _one(_mma(), (COMMIT, BAR)) + _all(_wait(1)) + FREE
    late = OTHERS + WAITED + _all((LD, 0), (BARRIER,), (WAIT_LD,)) + GONE
    assert ("MISSING_WAIT", MMA, LD) in _pairs(SETUP + PRODUCT + WAITED + again, late)
    early = OTHERS + WAITED + _all((LD, 0), (WAIT_LD,), (BARRIER,)) + GONE
    assert _pairs(SETUP + PRODUCT + WAITED + again, early) == set()


def test_columns_that_nobody_released() -> None:
    """Warp 0 multiplies again without asking whether warp 1 has loaded: a race, whichever comes first."""
    again = _one(_mma(), (COMMIT, BAR)) + _all(_wait(1)) + FREE
    found = _pairs(SETUP + PRODUCT + WAITED + again, OTHERS + WAITED + LOADS + GONE)
    assert {each for each in found if set(each[1:]) == {MMA, LD}} == {("DATA_RACE", MMA, LD)}


def test_a_sum_that_is_committed_before_its_last_product() -> None:
    """Warp 1 waits for the first product. The second one adds to it, and is committed on a barrier that warp 1 does not know."""
    last = _one(_mma(), (COMMIT, BAR), _mma(enable=1), (COMMIT, OTHER_BAR)) + _all(_wait(0, OTHER_BAR))
    found = _found(SETUP + last + FREE, OTHERS + WAITED + LOADS + GONE)
    assert found == {("MISSING_WAIT", "EARLIER_COMMIT", LD, MMA)}
    anew = _one(_mma(), (COMMIT, BAR), _mma(), _mma(enable=1), (COMMIT, OTHER_BAR)) + _all(_wait(0, OTHER_BAR))
    assert {("DATA_RACE", MMA, LD)} == _pairs(SETUP + anew + FREE, OTHERS + WAITED + LOADS + GONE)


def test_the_barrier_of_a_product_with_two_commits() -> None:
    """Two commits in a row tell of one product. A finding names the barrier for which the thread waits, else the last one."""
    both = _one(_mma(), (COMMIT, OTHER_BAR), (COMMIT, BAR)) + _all((BARRIER,), _wait(0))
    knows_none = _united(P.replayed(SETUP + both + _all(_wait(0, OTHER_BAR)) + FREE, OTHERS + _all((BARRIER,)) + LOADS + GONE))
    before = SETUP + _one(_mma(), (COMMIT, OTHER_BAR)) + _all(_wait(0, OTHER_BAR), (BARRIER,))
    waits = OTHERS + _all(_wait(0, OTHER_BAR), (BARRIER,), (BARRIER,)) + LOADS + GONE
    knows_one = _united(P.replayed(before + both + _all(_wait(1, OTHER_BAR)) + FREE, waits))
    for found, bar in ((knows_none, BAR), (knows_one, OTHER_BAR)):
        assert {(int(each["site"]), int(each["place"]) - 1 + WINDOW) for each in found} == {(LD, bar)}


def test_stores_and_loads_of_one_warp() -> None:
    for steps, found in (
        ([(ST, 0), (WAIT_ST,), (LD, 0), (WAIT_LD,)], set()),
        ([(ST, 0), (LD, 0), (WAIT_LD,), (WAIT_ST,)], {("MISSING_WAIT", LD, ST)}),
        ([(ST, 0), (ST, 0), (WAIT_ST,)], {("MISSING_WAIT", ST, ST)}),
        ([(ST, 0), (WAIT_ST,), (LD, 0), (ST, 0), (WAIT_LD,), (WAIT_ST,)], {("MISSING_WAIT", ST, LD)}),
    ):
        assert _pairs(SETUP + _all(*steps) + FREE, OTHERS + GONE) == found


def test_reads_of_cells_that_nothing_has_written() -> None:
    assert _pairs(SETUP + LOADS + FREE, OTHERS + GONE) == {("UNINITIALIZED_READ", LD, 0)}
    first = SETUP + _one(_mma(enable=1), (COMMIT, BAR)) + WAITED + FREE
    assert _pairs(first, OTHERS + GONE) == {("UNINITIALIZED_READ", MMA, 0)}


def test_a_new_allocation_is_empty() -> None:
    freed = _all((ST, 0), (WAIT_ST,), (DEALLOC, 128, 0)) + _alloc() + LOADS + FREE
    assert _pairs(SETUP + freed, OTHERS + GONE) == {("UNINITIALIZED_READ", LD, 0)}


def test_a_load_of_another_quarter() -> None:
    second = OTHERS + _all((ST, 32 << 16), (WAIT_ST,)) + GONE
    assert _found(SETUP + FREE, second) == set()
    assert _kinds(SETUP + FREE, OTHERS + _all((ST, 64 << 16), (WAIT_ST,)) + GONE) == {("TENSOR_MISUSE", "OTHER_QUARTER", ST)}
    assert _found(SETUP + FREE, OTHERS + _all((ST, 0), (WAIT_ST,)) + GONE) == set()


def test_the_lanes_of_a_warp_disagree() -> None:
    steps = [(lane, (ST, 0 if lane else 16)) for lane in range(32)] + _all((WAIT_ST,))
    assert ("TENSOR_MISUSE", "NOT_UNIFORM", ST) in _kinds(SETUP + steps + FREE, OTHERS + GONE)


@pytest.mark.parametrize(
    ("steps", "reason", "site"),
    [
        (_alloc(48) + _all((DEALLOC, 48, 0)), "ALLOC_COLUMNS", REQUEST),
        (_alloc(16) + _all((DEALLOC, 16, 0)), "ALLOC_COLUMNS", REQUEST),
        (_alloc(32) + _alloc(64, 32) + _all((DEALLOC, 32, 0), (DEALLOC, 64, 32)), "ALLOC_GROWS", REQUEST),
        (_all((RELINQUISH,)) + _alloc() + _all((DEALLOC, 128, 0)), "ALLOC_RELINQUISHED", REQUEST),
        (_alloc(), "ALLOC_LIVE", ALLOC),
        (_alloc() + _all((DEALLOC, 64, 0)), "DEALLOC_MISMATCH", DEALLOC),
        (_alloc() + _all((DEALLOC, 128, 0), (DEALLOC, 128, 0)), "DEALLOC_MISMATCH", DEALLOC),
        (_alloc(32) + _all((ST, 24), (WAIT_ST,), (DEALLOC, 32, 0)), "OUTSIDE_ALLOCATION", ST),
        (_alloc() + _all((DEALLOC, 128, 0), (ST, 0), (WAIT_ST,)), "USED_AFTER_DEALLOC", ST),
    ],
)
def test_misuses_of_allocations(steps: list[tuple[int, Step]], reason: str, site: int) -> None:
    assert _kinds(steps) == {("TENSOR_MISUSE", reason, site)}


def test_allocations_as_they_should_be() -> None:
    assert _found(_alloc(64) + _alloc(32, 64) + _all((RELINQUISH,), (DEALLOC, 64, 0), (DEALLOC, 32, 64))) == set()
    assert _found(_alloc() + _all((DEALLOC, 128, 0)) + _alloc(64) + _all((DEALLOC, 64, 0))) == set()


def test_a_dealloc_that_does_not_wait_for_others() -> None:
    second = OTHERS + _all((ST, 0), (WAIT_ST,))
    assert _found(SETUP + FREE, second + GONE) == set()
    assert _pairs(SETUP + _all((DEALLOC, 128, 0)), second) == {("DATA_RACE", DEALLOC, ST)}  # in this order, whichever comes first
    assert _pairs(SETUP + FREE, OTHERS + _all((ST, 0), (BARRIER,), (WAIT_ST,))) == {("MISSING_WAIT", DEALLOC, ST)}


def test_an_address_that_is_used_before_it_is_published() -> None:
    second = _all((ST, 0), (WAIT_ST,), (BARRIER,)) + GONE
    assert {kind for kind, *_ in _found(SETUP + FREE, second)} == {"DATA_RACE"}


def test_operands_in_shared_memory() -> None:
    """They must not change before the commit is known, and generic writes need a proxy fence."""
    write = [(0, (WRITE, TILE))]
    assert _pairs(SETUP + PRODUCT + WAITED + write + FREE, OTHERS + GONE) == set()
    assert _pairs(SETUP + PRODUCT + write + WAITED + FREE, OTHERS + GONE) == {("MISSING_WAIT", WRITE, MMA)}
    unfenced = _one((INIT, BAR)) + _alloc() + _operands() + _all((BARRIER,)) + PRODUCT + WAITED + FREE
    assert {(kind, site) for kind, site, _ in _pairs(unfenced, OTHERS + GONE)} == {("MISSING_PROXY_FENCE", MMA)}


def test_a_product_that_nobody_waits_for() -> None:
    found = _kinds(SETUP + PRODUCT + FREE, OTHERS + GONE)
    assert found == {("MISSING_WAIT", "NOT_WAITED", DEALLOC), ("LIFETIME", "EXIT", MMA)}


def test_operations_that_are_not_pipelined() -> None:
    """A copy before a product is, a shift behind a copy is not (9.7.16.6.2)."""
    low, high = 0x00080000 | TILE >> 4, 0x00004010
    fill = _one((CP, 64, low, high), _mma())
    assert _found(SETUP + fill + _one((COMMIT, BAR)) + WAITED + FREE, OTHERS + GONE) == set()
    shift = _one(_mma(), (SHIFT, 0), _mma(enable=1), (COMMIT, BAR))
    assert _found(SETUP + shift + WAITED + FREE, OTHERS + GONE) == set()
    late = _one((CP, 64, low, high), (SHIFT, 64), (COMMIT, BAR))
    assert _pairs(SETUP + late + WAITED + FREE, OTHERS + GONE) == {("MISSING_WAIT", SHIFT, CP)}


def test_two_issuers() -> None:
    """Products of two threads on one accumulator need an order of their issue; then they are a pipeline."""
    other = _one(_mma(), (COMMIT, OTHER_BAR), _wait(0, OTHER_BAR))
    alone = SETUP + PRODUCT + WAITED
    assert ("DATA_RACE", MMA, MMA) in _pairs(alone + FREE, OTHERS + other + GONE)
    assert _found(SETUP + PRODUCT + _all((BARRIER,)) + WAITED + FREE, OTHERS + _all((BARRIER,)) + other + GONE) == set()


def test_a_relaxed_wait_needs_a_fence_behind_it() -> None:
    for fences, found in (([(AFTER,)], set()), ([], {("MISSING_TENSOR_FENCE", "NO_FENCE_AFTER", LD)})):
        first = SETUP + PRODUCT + _all((RELAXED_WAIT, BAR, 0), *fences, (LD, 0), (WAIT_LD,), (AFTER,)) + FREE
        assert _kinds(first, OTHERS + GONE) == found


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [(True, True, ""), (False, True, "NO_FENCE_BEFORE"), (True, False, "NO_FENCE_AFTER"), (False, False, "NO_FENCE_BEFORE")],
)
def test_a_relaxed_arrival_and_wait_need_both_fences(before: bool, after: bool, reason: str) -> None:
    """Warp 1 loads and releases the columns, warp 0 multiplies into them again."""
    fences = ([(AFTER,)] if after else []), ([(BEFORE,)] if before else [])
    again = _one((RELAXED_WAIT, OTHER_BAR, 0), *fences[0], _mma(), (COMMIT, BAR)) + _all(_wait(1)) + FREE
    release = _all((LD, 0), (WAIT_LD,)) + _one(*fences[1], (ARRIVE, OTHER_BAR))
    found = _found(SETUP + PRODUCT + WAITED + again, OTHERS + WAITED + release + GONE)
    told = {(kind, why) for kind, why, *pair in found if set(pair) == {MMA, LD}}
    assert told == ({("MISSING_TENSOR_FENCE", reason)} if reason else set())


def test_a_pipeline_of_two_threads_with_relaxed_synchronisation() -> None:
    """9.7.16.6.4.3: a copy by one thread, the product by another one."""
    low, high = 0x00080000 | TILE >> 4, 0x00004010
    for fenced in (True, False):
        first = SETUP + _one((CP, 0, low, high), *([(BEFORE,)] if fenced else []), (ARRIVE, OTHER_BAR), (COMMIT, BAR)) + WAITED + FREE
        second = OTHERS + _one((RELAXED_WAIT, OTHER_BAR, 0), (AFTER,), _mma(), (COMMIT, THIRD_BAR), _wait(0, THIRD_BAR)) + GONE
        assert bool(_pairs(first, second)) is not fenced
