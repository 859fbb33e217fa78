"""Launches whose logs have no room are looked at in slices: some CTAs have logs, and other ones in the next launch of the shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from framework_support import BLOCK, Framework
from leaving_support import slow_clock
from planted import plant

import consan
from consan.backends.virtual import VirtualBackend
from consan.checker.judging import replayable
from consan.checker.logs import log_lines, shares
from consan.checker.logs.log_lines import LaunchSlice, LogSlots
from consan.checker.logs.shares import Slices
from consan.reports.model import Report
from consan.reports.verdict.coverage import by_kernel
from consan.session.executing import judging, recording

CTAS = 16
MOST_RUNS = 40  # of a kernel in one launch
ROOM = 1 << 14  # bytes: logs of a few of the CTAs
# Each CTA does what no other does, by data.
SHIFTS = """
extern "C" __global__ void shifts(unsigned* out, const unsigned* by, int racing) {
    __shared__ unsigned values[256];
    unsigned shift = by[blockIdx.x];
    values[threadIdx.x + shift] = threadIdx.x;
    if (blockIdx.x != racing) __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[63 - threadIdx.x + shift];
}
"""
# Two CTAs write to the same words, where data say so.
SCATTERS = """
extern "C" __global__ void scatters(unsigned* out, const unsigned* to, int) {
    __shared__ unsigned values[64];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[to[blockIdx.x] * blockDim.x + threadIdx.x] = values[63 - threadIdx.x] + blockIdx.x;
}
"""


def launched(source: str, data: Any, number: int, monkeypatch: pytest.MonkeyPatch, room: int = ROOM, **options: Any) -> tuple[Any, int]:
    """The report of a launch, and how often the kernel ran."""
    runs, once = [0], VirtualBackend.launch

    def counted(*args: Any, **more: Any) -> Any:
        runs[0] += 1
        assert runs[0] < MOST_RUNS
        return once(*args, **more)

    monkeypatch.setattr(VirtualBackend, "launch", counted)
    out = np.zeros(CTAS * BLOCK[0], np.uint32)
    report = consan.launch(consan.Kernel(source), CTAS, BLOCK, (out, data, np.int32(number)), device="cpu", trace_memory=room, **options)
    return report, runs[0]


def test_a_launch_of_more_slices_than_are_wanted_has_none() -> None:
    """They are counted, not listed: a grid may have 2^47 CTAs."""
    assert shares.Slices.fitting(1 << 47, 1, 17, pairs=True, most_bytes=1, most=64) is None
    for ctas, pairs in ((64, True), (64, False), (5, True), (17, False)):
        found = shares.Slices.fitting(ctas, 1, 17, pairs=pairs, most_bytes=1, most=64)
        assert found is not None
        assert found.number == len(found.left)


@pytest.fixture
def shift() -> Any:
    return np.arange(CTAS, dtype=np.uint32)


def test_a_launch_that_can_be_repeated_has_all_slices(shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report, runs = launched(SHIFTS, shift, -1, monkeypatch, global_memory="off")
    assert (report.verdict, list(report.incomplete)) == ("clean", [])
    (kernel,) = report.kernels
    assert (kernel.launches, kernel.ctas, kernel.histories) == (1, CTAS, CTAS)
    assert runs > 2


@pytest.mark.parametrize("racing", [0, 7, CTAS - 1])
def test_a_race_is_found_in_any_slice(racing: int, shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report, _ = launched(SHIFTS, shift, racing, monkeypatch, global_memory="off")
    assert (report.verdict, [each.kind for each in report.findings]) == ("violations", ["data-race"])
    assert {each.ctas for each in report.findings} == {1}
    whole, runs = launched(SHIFTS, shift, racing, monkeypatch, 1 << 30, global_memory="off")
    assert runs == 1
    assert [each.count for each in whole.findings] == [each.count for each in report.findings]


def test_ctas_that_did_the_same_need_one_slice(shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report, runs = launched(SHIFTS, shift * 0, -1, monkeypatch, global_memory="off")
    assert (report.verdict, runs) == ("clean", 1)


@pytest.mark.parametrize(("first", "second"), [(0, 1), (3, 12), (7, 8), (0, CTAS - 1)])
def test_a_race_between_ctas_is_found_in_any_pair_of_sets(first: int, second: int, shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shift[second] = first
    report, runs = launched(SCATTERS, shift, 0, monkeypatch, 1 << 15, global_memory="on")
    assert (report.verdict, {each.kind for each in report.findings}) == ("violations", {"global-race"})
    (found,) = report.findings
    assert {access.block[0] for access in found.pair} == {first, second}
    whole, once = launched(SCATTERS, shift, 0, monkeypatch, 1 << 30, global_memory="on")
    assert once == 1 < runs
    assert [(each.kind, each.count) for each in whole.findings] == [(each.kind, each.count) for each in report.findings]


def test_ctas_without_a_race_are_clean_in_all_pairs_of_sets(shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report, runs = launched(SCATTERS, shift, 0, monkeypatch, 1 << 15, global_memory="on")
    assert (report.verdict, list(report.incomplete), runs) == ("clean", [], 6)  # of four sets
    assert [(each.launches, each.global_ctas) for each in report.kernels] == [(1, CTAS)]


def test_a_loop_whose_log_is_full_has_longer_logs_of_fewer_ctas(shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looped = "for (unsigned i = 0; i < 200; ++i) values[threadIdx.x + shift + by[gridDim.x + i]] ="
    source = SHIFTS.replace("values[threadIdx.x + shift] =", looped)
    shift = np.concatenate([shift, np.zeros(200, np.uint32)])
    report, runs = launched(source, shift, -1, monkeypatch, 1 << 19, global_memory="off")
    assert (report.verdict, list(report.incomplete)) == ("clean", [])
    assert runs > 2
    report, _ = launched(source, shift, CTAS - 2, monkeypatch, 1 << 19, global_memory="off")
    assert report.verdict == "violations"


FEW = 8  # CTAs of a framework's launch


class Program:
    """A framework that launches a kernel, each time with the same data."""

    def __init__(self, source: str, entry: str, data: Any, monkeypatch: pytest.MonkeyPatch, room: int, **options: Any) -> None:
        slow_clock(monkeypatch)
        self.entry, self.framework = entry, Framework(source, trace_memory=room, **options)
        self.framework.backend.write(self.framework.source, np.asarray(data, np.uint32).tobytes())

    def launch(self, number: int = -1) -> Report:
        """The report of all launches so far."""
        self.framework.launch(self.entry, number % (1 << 32), FEW)
        return self.framework.report()


def sampled(report: Report, area: str = "shared-memory") -> str:
    """The part that the first kernel's coverage says was looked at."""
    (kernel,) = (each for each in report.kernels if each.launches)
    return by_kernel(report)[kernel.name][area]


IN_CTA, BETWEEN = 2500, 6000  # bytes: logs for four slices of `shifts`, and for six pairs of sets of `scatters`
OPTION = "(--trace-memory gives more; later launches of its shape have other slices)"


@pytest.mark.parametrize("racing", [-1, 0, 7])
def test_launches_of_a_program_have_slice_by_slice(racing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(SHIFTS, "shifts", range(FEW), monkeypatch, IN_CTA, global_memory="off")
    for number in (1, 2, 3):
        report = program.launch(racing)
        assert report.verdict == ("violations" if racing == 0 else "incomplete")
        assert sampled(report) == f"sampled: {number} of 4 slices"
        (why,) = report.incomplete
        assert why == f"shifts: {sampled(report)} of its CTAs, because the logs of all CTAs take more than 2 KiB {OPTION}"
    for _ in range(2):
        report = program.launch(racing)
        assert (report.verdict, sampled(report)) == ("clean" if racing < 0 else "violations", "checked")


def test_a_new_report_begins_with_no_slice_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(SHIFTS, "shifts", range(FEW), monkeypatch, IN_CTA, global_memory="off")
    for _ in range(3):
        program.launch()
    program.framework.session.take()
    assert sampled(program.launch()) == "sampled: 1 of 4 slices"


@pytest.mark.parametrize("last", [FEW - 1, 0])
def test_launches_of_a_program_have_pair_by_pair(last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(SCATTERS, "scatters", [*range(FEW - 1), last], monkeypatch, BETWEEN)
    for number in range(1, 6):
        report = program.launch()
        assert report.verdict == "incomplete"
        assert sampled(report, "global-memory") == sampled(report) == f"sampled: {number} of 6 slices"
    report = program.launch()  # the last pair is that of the first and the last set
    assert (report.verdict, sampled(report, "global-memory")) == (("violations", "clean")[last > 0], "checked")
    assert program.framework.exchanged == [True] * 6
    report = program.launch()
    assert (report.verdict, sampled(report, "global-memory")) == (("violations", "clean")[last > 0], "sampled (6 of 7)")


@pytest.mark.parametrize("last", [FEW - 1, 0])
def test_a_full_log_of_a_program_is_divided(last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can repeat the launch, so its logs had all the room that there is."""
    source = SCATTERS.replace("out[to[", "for (unsigned i = 0; i < 60; ++i) out[to[8 + i] + to[")
    program = Program(source, "scatters", [*range(FEW - 1), last], monkeypatch, 1 << 18)
    assert sampled(program.launch()) == "sampled: 0 of 28 slices"
    for _ in range(28):
        report = program.launch()
    assert (report.verdict, list(report.incomplete)) == (("violations", "clean")[last > 0], [])


FLAGS = """
extern "C" __global__ void flags(unsigned* out, unsigned* flag, int) {
    if (threadIdx.x == 0 && blockIdx.x == 0) asm volatile("st.release.gpu.u32 [%0], 1;" :: "l"(flag) : "memory");
    unsigned seen = 0;
    if (threadIdx.x == 0 && blockIdx.x == 1) asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    out[blockIdx.x * blockDim.x + threadIdx.x] = seen;
}
"""


def test_ctas_that_may_synchronise_through_memory_are_not_divided(shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report, runs = launched(FLAGS, shift, 0, monkeypatch, 1 << 13, global_memory="on")
    assert (report.verdict, runs) == ("incomplete", 1)
    assert "16 CTAs of 64 threads do not fit the trace memory" in report.incomplete[1]


FAULTS: dict[str, tuple[Any, str, str]] = {
    "all slices were seen": (shares, "self.left.remove(sets)", "self.left.clear()"),
    "the same slice again": (shares, "return self.left[0] if self.left else", "return self._all()[0] if self.left else"),
    "logs that are not there": (log_lines, "np.asarray(self.slots_of(ctas) < self.slots - 1)", "np.ones(np.shape(ctas), np.bool_)"),
    "logs of other CTAs": (log_lines, "np.where(one < self.count, one, self.count + other)", "one"),
    "no unknown CTA": (replayable, "self.unknown += len(group.members) * left", "self.unknown += 0"),
    "not repeated": (recording, "LONGEST_REPEATED: Final = 180.0", "LONGEST_REPEATED: Final = -1.0"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault: str, shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new = FAULTS[fault]
    plant(monkeypatch, module, old, new)
    monkeypatch.setattr(judging, "LONGEST_REPEATED", recording.LONGEST_REPEATED)
    racy, right = test_a_race_is_found_in_any_slice, test_a_launch_that_can_be_repeated_has_all_slices
    with pytest.raises(AssertionError):
        _ = racy(CTAS - 1, shift, monkeypatch), right(shift, monkeypatch)  # type: ignore[func-returns-value]


@pytest.mark.parametrize("fault", ["all slices were seen", "logs of other CTAs", "no findings of earlier pairs"])
def test_a_planted_fault_in_pairs_is_noticed(fault: str, shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    more = {"no findings of earlier pairs": (replayable, "done=[each.copied() for each in done]", "done=[]")}
    plant(monkeypatch, *(FAULTS | more)[fault])
    racy = test_a_race_between_ctas_is_found_in_any_pair_of_sets
    with pytest.raises(AssertionError):
        _ = racy(3, 12, shift, monkeypatch), racy(7, 8, np.arange(CTAS, dtype=np.uint32), monkeypatch)  # type: ignore[func-returns-value]


@pytest.mark.parametrize(("ctas", "count"), [(16, 3), (7, 2), (5, 5), (100, 8), (9, 1)])
@pytest.mark.parametrize("pairs", [False, True])
def test_slices_have_each_cta_and_pairs_each_two(ctas: int, count: int, pairs: bool) -> None:
    known = Slices(ctas, count, pairs, 0)
    seen, met = set[int](), set[tuple[int, int]]()
    while known.left:
        some = known.next
        numbers = LogSlots(ctas, some, lambda: np.arange(ctas)[:, None]).of([cta for cta in range(ctas) if some.has([cta])[0]])
        there = [cta for cta in range(ctas) if some.has([cta])[0]]
        assert len(set(numbers.tolist())) == len(there)
        assert all(0 <= number < some.slots - 1 for number in numbers.tolist())
        seen.update(there)
        met.update((one, other) for one in there for other in there)
        known.looked(some, 0.0)
    assert seen == set(range(ctas))
    assert not pairs or len(met) == ctas * ctas
    assert known.why == ""


def test_the_kernel_and_the_host_agree_on_the_logs() -> None:
    some = LaunchSlice(4, 20, 3)
    found = some.slots_of(range(32)).tolist()
    assert [cta for cta, slot in enumerate(found) if slot < 6] == [4, 5, 6, 20, 21, 22]
    assert [slot for slot in found if slot < 6] == list(range(6))
    assert set(found) == set(range(7))
