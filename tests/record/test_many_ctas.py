"""Launches of more CTAs than are replayed together: those that nothing orders are checked one by one. How each kernel is recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from planted import break_checker, quick

import consan
from consan.checker.compiled import replay
from consan.checker.judging import grid
from consan.instrument.record import record, recordable
from consan.instrument.record.families.global_memory import Mode
from consan.session.planning import launch_sizes

SOURCE = """
// A counter hands out places: with `racy`, some of them twice.
extern "C" __global__ void compacts(unsigned* out, unsigned* count, const unsigned* in, int racy) {
    __shared__ unsigned values[32];
    unsigned i = blockIdx.x * 32 + threadIdx.x;
    values[threadIdx.x] = in[i];
    __syncthreads();
    unsigned value = values[31 - threadIdx.x];
    if (value % 3 == 0) out[racy ? atomicAdd(count, 1) / 2 : atomicAdd(count, 1)] = value;
}
// The last CTA adds up what the others have stored.
extern "C" __global__ void last_block(unsigned* out, unsigned* count, const unsigned* in, int) {
    if (threadIdx.x != 0) return;
    out[1 + blockIdx.x] = in[blockIdx.x];
    __threadfence();
    if (atomicAdd(count, 1) + 1 != gridDim.x) return;
    __threadfence();
    for (unsigned i = 0; i < gridDim.x; ++i) out[0] += out[1 + i];
}
// It waits for a flag.
extern "C" __global__ void polls(unsigned* out, unsigned* count, const unsigned* in, int) {
    if (blockIdx.x == 0) while (atomicAdd(count, 0) == 0);
    else atomicExch(count, 1);
}
"""


def _report(entry: str, racy: int = 0, ctas: int = 8, **options: object) -> consan.Report:
    args = [np.zeros(512, np.uint32), np.zeros(1, np.uint32), np.arange(512, dtype=np.uint32), racy]
    return consan.launch(consan.Kernel(SOURCE, entry), ctas, 32, args, device="cpu", **options)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_sizes, "MOST_TOGETHER", 4)


@pytest.mark.parametrize("racy", [0, 1])
def test_what_nothing_orders_is_checked_one_by_one(racy: int) -> None:
    report = _report("compacts", racy)
    assert report.verdict == ("violations" if racy else "clean")
    assert {finding.kind for finding in report.findings} == ({"global-race", "data-race"} if racy else set())
    assert report.not_checked == ()


MAY_LACK_ORDER = {
    "data": ("ld.relaxed", "st.relaxed.gpu.global.u32 [%0], 1;"),
    "data of a strong store": ("ld.volatile", "st.volatile.global.u32 [%0], 1;"),
    "a flag that is exchanged": ("flag", "{.reg .b32 old; atom.relaxed.gpu.global.exch.b32 old, [%0], 1;}"),
    "a flag that is compared": ("flag", "{.reg .b32 old; atom.relaxed.gpu.global.cas.b32 old, [%0], 0, 1;}"),
}


def _crossing(load: str, store: str, entry: str) -> consan.Kernel:
    """Two CTAs each store a word, and look at the other's. The value is data, or decides a branch."""
    seen = "out[2 + me] = seen;" if load != "flag" else "if (seen) out[2 + me] = 1;"
    suffix = ".gpu" if load != "ld.volatile" else ""
    load = "ld.relaxed" if load == "flag" else load
    return consan.Kernel(f"""extern "C" __global__ void {entry}(unsigned* all) {{
        if (threadIdx.x) return;
        unsigned me = blockIdx.x & 1, *out = all + blockIdx.x / 2 * 4, seen;
        asm volatile("{store}" :: "l"(out + me) : "memory");
        asm volatile("{load}{suffix}.global.u32 %0, [%1];" : "=r"(seen) : "l"(out + 1 - me) : "memory");
        {seen}
    }}""")


def _crossed(kind: str, choice: str = "auto", entry: str = "crosses") -> consan.Report:
    return consan.launch(_crossing(*MAY_LACK_ORDER[kind], entry), 8, 32, [np.zeros(64, np.uint32)], device="cpu", global_memory=choice)


@pytest.mark.parametrize("kind", MAY_LACK_ORDER)
def test_what_may_lack_order_makes_the_report_incomplete(kind: str) -> None:
    """A finding of this kind is looked for among CTAs that are replayed together only."""
    report = _crossed(kind)
    assert report.verdict == "incomplete"
    assert (
        "8 CTAs were replayed one by one: what a thread may read too early (missing-order) was not looked for (--global on does)"
        in (report.incomplete[0])
    )
    whole = _crossed(kind, "on")
    assert (whole.verdict, whole.not_checked, {finding.kind for finding in whole.findings}) == ("clean", (), {"missing-order"})


@pytest.mark.parametrize("kind", MAY_LACK_ORDER)
def test_a_fault_in_what_may_lack_order(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of a kernel is taken for one that has no such access."""
    monkeypatch.setattr(recordable.data, "loads_of_data", lambda function: frozenset())
    monkeypatch.setattr(recordable, "sets_flags", lambda function: False)
    with pytest.raises(AssertionError):
        assert _crossed(kind, entry="crosses_by_a_fault").verdict == "incomplete"  # the other one is recorded already


def test_with_global_on_all_are_replayed_together() -> None:
    assert _report("compacts", global_memory="on").not_checked == ()


@pytest.mark.parametrize("entry", ["last_block", "polls"])
def test_what_may_be_ordered_is_not(entry: str) -> None:
    report = _report(entry)
    assert (report.verdict, report.findings) == ("incomplete", ())
    assert "8 CTAs that may synchronise through memory are too many" in report.incomplete[0]
    assert _report(entry, ctas=4).verdict == "clean"


def test_each_kernel_is_recorded_as_it_needs() -> None:
    plain = 'extern "C" __global__ void plain(unsigned* out) { out[threadIdx.x] = 1; }\n'
    recorded = record(consan.Kernel(plain + SOURCE, "plain").ptx, global_races=True)
    modes = {kernel.name: kernel.mode for kernel in recorded.kernels}
    assert modes == {"plain": Mode.ALONE, "compacts": Mode.SYNCED, "last_block": Mode.SYNCED, "polls": Mode.SYNCED}
    assert {kernel.name for kernel in recorded.kernels if kernel.unordered} == {"plain", "compacts"}


def test_kernels_that_share_a_function_are_recorded_alike() -> None:
    shared = "__device__ __noinline__ void stores(unsigned* out) { out[threadIdx.x] = 1; }\n"
    kernels = 'extern "C" __global__ void {0}(unsigned* out) {{ stores(out); {1} }}\n'
    source = shared + kernels.format("plain", "") + kernels.format("flag", "while (atomicExch(out, 1));")
    assert {kernel.mode for kernel in record(consan.Kernel(source, "plain").ptx, global_races=True).kernels} == {Mode.SYNCED}


TURNS = """
// CTAs store in turn, each behind the one before it; the last one has not acquired.
extern "C" __global__ void turns(unsigned* out, unsigned* turn, unsigned) {
    unsigned seen = 0, last = blockIdx.x == gridDim.x - 1;
    if (threadIdx.x) return;
    while (seen != blockIdx.x) {
        if (last) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(turn) : "memory");
        else asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(turn) : "memory");
    }
    out[0] = blockIdx.x ? 7 : 1;
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(turn) : "memory");
}
"""


def _turns(monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[tuple[str, str]]]:
    monkeypatch.setattr(launch_sizes, "MOST_TOGETHER", 64)
    args = [np.zeros(1, np.uint32), np.zeros(1, np.uint32), 0]
    report = consan.launch(consan.Kernel(TURNS, "turns"), 40, 32, args, device="cpu")
    return report.verdict, [(finding.kind, finding.severity) for finding in report.findings]


def test_of_many_stores_in_turn_those_are_kept_that_tell_what_was_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last store races with the first one, of another value, and not only with those of its own."""
    assert _turns(monkeypatch) == ("violations", [("global-race", "error")])


IN_TURN = quick("global_race_items.hpp", "later >= LATER && values", "later >= LATER")


def test_a_fault_in_that(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    break_checker(monkeypatch, tmp_path, (replay, grid), *IN_TURN)
    assert _turns(monkeypatch) == ("clean", [("global-race", "warning")])
