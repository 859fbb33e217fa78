"""Where addresses in global memory decide, one CTA stands for those in which no access can meet a copy: each other one is replayed.

The bytes that a CTA touches are computed from its compact log; the full log says which they are.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compact_support import Hangs, Work, of_twin, touched
from test_compact import TAKEN

import consan
from consan.backends.virtual import VirtualBackend
from consan.checker import recorder, spans
from consan.checker.collected import LaunchedKernel
from consan.checker.expand import VirtualExpander
from consan.checker.memory import LogMemory
from consan.checker.recorder import check
from consan.checker.replay import replay
from consan.checker.spans import Spans
from consan.instrument.record import footprint
from consan.instrument.record.computed import Computed
from consan.instrument.record.footprint import MEETING

CTAS, ODD, THREADS = 12, 7, 64
COPY = """
extern "C" __global__ void kernel(float4* x, int odd, int* where) {
    __shared__ alignas(128) float4 tile[64];
    int t = threadIdx.x, b = blockIdx.x, i = b * 64 + t, far = CTAS * 64;
    bool mine = b == odd; float4 sum = make_float4(0, 0, 0, 0);
    unsigned to = (unsigned)__cvta_generic_to_shared(tile);
    BODY
    if (sum.x == 7) x[2 * far + i] = sum;
}
""".replace("CTAS", str(CTAS))
ISSUE = """asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to + 16 * t), "l"(x + i) : "memory");
asm volatile("cp.async.commit_group;" ::: "memory");
BETWEEN
asm volatile("cp.async.wait_group 0;" ::: "memory");"""
BULK = """__shared__ alignas(8) unsigned long long bar; unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
if (t == 0) { asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__syncthreads();
if (t == 0) { asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], 512; }" :: "r"(at) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];"
                 :: "r"(to), "l"(x + b * 64), "r"(at) : "memory"); }
BETWEEN
asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra AGAIN; }" :: "r"(at) : "memory");"""
STORE = """tile[t] = make_float4(1, 2, 3, 4); asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads();
if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" :: "l"(x + b * 64), "r"(to) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
BETWEEN
if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");"""
ZEROS = "make_float4(0, 0, 0, 0)"
WRITE = f"x[i + (mine ? 0 : far)] = {ZEROS};"
GUARDED = (
    """asm volatile("{ .reg .pred p; setp.eq.s32 p, %0, %2; @p st.global.u32 [%1], 1; }" :: "r"(WHO), "l"(x + i), "r"(b) : "memory");"""
)
# Each is clean but in the odd CTA, where an access meets the other side of a copy in flight.
BODIES = {
    "a write of all threads": ISSUE.replace("BETWEEN", WRITE),
    "a write of one lane": ISSUE.replace("BETWEEN", f"x[i + (mine && t == 33 ? -1 : far)] = {ZEROS};"),
    "a byte": ISSUE.replace("BETWEEN", "if (t == 63) ((char*)(x + b * 64))[mine ? 1023 : 1024 + far * 16] = 1;"),
    "in the last round": ISSUE.replace(
        "BETWEEN", f'_Pragma("unroll 1") for (int k = 0; k < 40; ++k) x[i + (mine && k == 39 ? 0 : far + k)] = {ZEROS};'
    ),
    "an address out of memory": ISSUE.replace("BETWEEN", f"x[where[b] * 64 + t] = {ZEROS};"),
    "an atomic": ISSUE.replace("BETWEEN", "atomicAdd((int*)(x + i + (mine ? 0 : far)), 1);"),
    "a guard": ISSUE.replace("BETWEEN", GUARDED.replace("WHO", "odd")),
    "a guard out of memory": ISSUE.replace("BETWEEN", GUARDED.replace("WHO", "where[b]")),
    "a bulk load": BULK.replace("BETWEEN", WRITE),
    "a bulk store, read": STORE.replace("BETWEEN", "if (t < 32) sum = x[i + (mine && t == 3 ? 0 : far)];"),
    "a bulk store, written": STORE.replace("BETWEEN", f"if (t < 32) x[i + (mine && t == 31 ? 0 : far)] = {ZEROS};"),
}
SIZES = """asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 4, p; }"
    :: "r"(to + 16 * t), "l"(x + i), "r"(mine ? 1 : 0) : "memory");
asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" :: "r"(to + 16 * t), "l"(x + i), "r"(mine ? 8 : 0) : "memory");
asm volatile("cp.async.wait_all;" ::: "memory"); x[i] = make_float4(0, 0, 0, 0);"""


def _work(body: str) -> Work:
    kernel = consan.Kernel(COPY.replace("BODY", body), entry="kernel", arch="sm_90a")
    where = np.arange(CTAS, dtype=np.int32) + CTAS
    where[ODD] = ODD
    return Work(kernel.ptx, "kernel", (CTAS, 1, 1), (THREADS, 1, 1), [np.zeros(3 * CTAS * 64 * 4, np.float32), np.int32(ODD), where])


def _check(work: Work, **how: Any) -> tuple[list[tuple[int, int]], Any]:
    """The CTAs of each finding and the first of them, and what was checked."""
    recorded = work.recorded(compact=True)
    assert recorded.footprint is not None
    launch = work.run(recorded)
    checked = check(launch, recorded, LaunchedKernel(0, 0, work.grid, work.block), {}, **how)
    return _ctas(checked), checked


def _ctas(checked: Any) -> list[tuple[int, int]]:
    records, table = checked.tables()
    return [(int(row["ctas"]), int(one["event"]["ctaid"][0])) for one, row in zip(records, table, strict=False)]


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One number for each replay."""
    done: list[int] = []
    monkeypatch.setattr(recorder, "replay", lambda *given, **how: done.append(1) or replay(*given, **how))
    return done


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_one_cta_of_many_meets_a_copy(body: str, replays: list[int]) -> None:
    work = _work(body)
    found, checked = _check(work)
    assert found
    assert set(found) == {(1, ODD)}
    assert checked.gaps == {}
    assert differences(work) == "" or body == BODIES["a guard out of memory"]
    few, replays[:] = len(replays), []
    exhaustive, _ = _check(work, exhaustive=True)
    assert sorted(found) == sorted(exhaustive)
    assert len(replays) > 2 * CTAS
    assert few <= 6 or body == BODIES["a guard out of memory"]


@pytest.mark.parametrize("body", ["a write of one lane", "a bulk load", "a bulk store, read"])
def test_where_global_memory_is_checked_too(body: str, replays: list[int]) -> None:
    found, _ = _check(replace(_work(BODIES[body]), outer=True))
    assert found == [(1, ODD)]
    assert len(replays) <= 6


@pytest.mark.parametrize("odd", [0, ODD])
def test_the_cta_that_was_replayed_first_may_be_the_one(odd: int, replays: list[int]) -> None:
    work = _work(BODIES["a write of all threads"])
    work.args[1] = np.int32(odd)
    found, _ = _check(work)
    assert found == [(1, odd)]
    assert len(replays) == (6 if odd == 0 else 4)  # the first, one of those that are apart, the odd one


def test_a_later_launch_replays_only_what_is_near(replays: list[int]) -> None:
    work = _work(BODIES["a write of all threads"])
    recorded, known = work.recorded(compact=True), dict[Any, Any]()
    for odd, count in ((-1, 2), (-1, 0), (5, 2)):
        work.args[1] = np.int32(odd)
        replays.clear()
        checked = check(work.run(recorded), recorded, LaunchedKernel(0, 0, work.grid, work.block), known)
        assert (len(replays), len(checked.found)) == (count, int(odd >= 0))


@pytest.mark.parametrize(("body", "computed"), [("a write of all threads", [1, 1, 0, 1]), ("an address out of memory", [1, 1, 1, 1])])
def test_spans_of_the_same_launch_are_computed_once(body: str, computed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where addresses are words of the log: those of another launch may differ."""
    made: list[int] = []
    run = VirtualExpander.spans
    monkeypatch.setattr(VirtualExpander, "spans", lambda *given: made.append(1) or run(*given))
    work, known, memory = _work(BODIES[body]), dict[Any, Any](), LogMemory(VirtualBackend())
    recorded, places = work.recorded(compact=True), [memory.backend.alloc(array.nbytes) for array in (work.args[0], work.args[2])]
    x, where = (place.to_bytes(8, "little") for place in places)
    for odd, count in zip((-1, ODD, ODD, 3), computed, strict=True):
        made.clear()
        memory.backend.write(places[1], np.where(np.arange(CTAS) == odd, np.arange(CTAS), np.arange(CTAS) + CTAS).astype("<i4"))
        work.args[:] = x, np.int32(odd), where
        launch = work.run(recorded, memory)
        checked = check(launch, recorded, LaunchedKernel(0, 0, work.grid, work.block), known)
        launch.free()
        assert (_ctas(checked), len(made)) == ([(1, odd)] * (odd >= 0), count)


def _spans(launch: Any, unit: int) -> list[tuple[int, int]]:
    """Those that the footprint of a unit has, but for tensors."""
    found = launch.expander.spans(launch, launch.units[unit].tolist())
    first, behind = found.first.min(axis=1).tolist(), found.behind.max(axis=1).tolist()
    sides = launch.expander.recorded.footprint().sides[0]
    return [span for span, side in zip(zip(first, behind, strict=True), sides, strict=True) if not side.tensor]


def test_a_copy_that_reads_nothing_has_no_span() -> None:
    work = _work(SIZES)
    recorded = work.recorded(compact=True)
    launch = work.run(recorded)
    assert launch.apart(range(CTAS), "").tolist() == [unit != ODD for unit in range(CTAS)]
    sizes = [[behind - first for first, behind in _spans(launch, unit) if behind > first] for unit in (0, ODD)]
    assert sizes == [[64 * 16], [63 * 16 + 4, 63 * 16 + 8, 64 * 16]]


def differences(work: Work) -> str:
    """Where the spans of a launch are not those of its full logs. They may be wider where a guard is not known."""
    recorded = work.recorded(compact=True)
    footprint_text = recorded.footprint() if recorded.footprint is not None else None
    if footprint_text is None:
        return "no footprint"
    launch = work.run(recorded)
    if launch.silent:
        return "no footprint"
    for unit in [group.members[-1] for group in launch.grouped().groups][:3]:
        for side, (span, exact) in enumerate(zip(_spans(launch, unit), touched(launch, recorded, unit), strict=True)):
            if span != exact:
                return f"unit {unit}, side {side}: {span}, not {exact}"
    return ""


NAMES = ("cp_async_source_overwritten", "cp_async_off_by_one", "bulk_source_overwritten", "bulk_result_no_wait", "tensor_results")


@pytest.mark.parametrize("name", NAMES)
def test_spans_are_those_of_full_logs(name: str) -> None:
    assert differences(of_twin(name)) == ""


def _without_branches(self: Computed, *given: Any) -> Computed:
    found = NARROWED(self, *given)
    found.branches = set()
    return found


NARROWED = Computed.narrowed
# What is replaced in which object, and a launch that shows it.
FAULTS: dict[str, tuple[Any, str, Any, str]] = {
    "writes are not compared with sources": (spans, "MEETING", MEETING[1:], "a write of all threads"),
    "nor with results": (spans, "MEETING", (MEETING[0], MEETING[2]), "a bulk store, written"),
    "reads are not": (spans, "MEETING", MEETING[:2], "a bulk store, read"),
    "a guard is the other way round": (
        footprint,
        "known_guard",
        lambda _, each: f"@!{each.predicate.register} " if each.predicate else "",
        "a guard",
    ),
    "a span does not begin": (footprint, "FIRST", footprint.LAST, "a write of one lane"),
    "no branch is followed": (Computed, "narrowed", _without_branches, "in the last round"),
    "all units are apart": (Spans, "meet", lambda self, _: np.zeros(self.first.shape[1], np.bool_), "an atomic"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, changed, body = FAULTS[fault]
    work = _work(BODIES[body])
    assert differences(work) == ""
    monkeypatch.setattr(owner, name, changed)
    assert differences(work) or _check(work)[0] != [(1, ODD)]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", TAKEN)
def test_spans_of_every_kernel(name: str) -> None:
    with contextlib.suppress(Hangs):
        for racy in (False, True):
            assert differences(of_twin(name, racy=racy)) in ("", "no footprint")
