"""`--global`: what `auto` leaves out it names, and the verdict is that of the rest; `on` makes it incomplete; `off` looks for nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file

import consan
from consan._errors import EnvironmentFailure
from consan.checker.logs import shares
from consan.checker.logs.launch import Launch
from consan.checker.logs.memory import SMALLER, LogMemory
from consan.checker.logs.shares import Pairs
from consan.reports import render
from consan.reports.verdict import coverage
from consan.session.executing import launch_check
from consan.session.planning import launch_sizes
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

RACY = """
extern "C" __global__ void k(int* out) { out[threadIdx.x] = blockIdx.x; }"""
FINE = """
extern "C" __global__ void k(int* out) { out[blockIdx.x * 32 + threadIdx.x] = 1; }"""
LOADED = """
extern "C" __global__ void k(int* out) { int i = blockIdx.x * 32 + threadIdx.x; out[i + out[i]] = 1; }"""
SWITCH = """
extern "C" __global__ void k(int* out) {
    if (blockIdx.x > 3) asm volatile("INSTRUCTION" :: "l"(out) : "memory");
    out[threadIdx.x] = blockIdx.x;
}"""
SLEEPS = """
extern "C" __global__ void k(int* out) {
    while (out[blockIdx.x * 32 + threadIdx.x]) __nanosleep(20);
    out[blockIdx.x * 32 + threadIdx.x] = 1;
}"""
NOT_EXECUTED = {
    "multimem": "multimem.red.relaxed.sys.global.add.u32 [%0], 1;",
    "surface": "{.reg .b32 x; mov.b32 x, 0; sust.p.1d.b32.trap [%0, {0}], x;}",
}
LAST = """__device__ unsigned done;
extern "C" __global__ void k(int* out) {
    __shared__ int row[32];
    row[threadIdx.x ^ 1] = threadIdx.x;
    __syncwarp();
    out[blockIdx.x * 32 + threadIdx.x] = row[threadIdx.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&done, 1) == gridDim.x - 1) __threadfence(), out[32] += 1;
}"""

TOO_SMALL = f"4 CTAs of 32 threads do not fit the trace memory ({SMALLER})"


def _report(source: str, choice: str) -> Any:
    return consan.launch(consan.Kernel(source, arch="sm_90"), 4, 32, [np.zeros(128, np.int32)], device="cpu", global_memory=choice)


def test_auto_looks_for_races_and_off_does_not() -> None:
    """In this order: the module is prepared anew for each."""
    off, auto = _report(RACY, "off"), _report(RACY, "auto")
    assert (off.verdict, off.findings) == ("clean", ())
    assert off.not_checked == ("global-memory: races are not looked for (1 store and 0 atomic instructions in 1 kernel)",)
    assert [finding.kind for finding in auto.findings] == ["global-race"]
    assert (auto.verdict, auto.not_checked, "global-memory" in auto.checked) == ("violations", (), True)


def _check_left_out(source: str, why: str) -> None:
    auto = _report(source, "auto")
    assert (auto.verdict, auto.findings, "global-memory" in auto.checked) == ("incomplete", (), False)
    (outside,) = auto.not_checked
    assert outside.startswith("global-memory: races are not looked for in k: ")
    assert why in outside


def test_a_module_that_is_not_taken_is_named() -> None:
    for choice in ("auto", "on"):
        report = _report(SLEEPS, choice)
        assert (report.verdict, "global-memory" in report.checked) == ("incomplete", False)
        assert any("1 launch of k could not be recorded: k polls memory in a loop" in reason for reason in report.incomplete)
        assert not any("no instrumented kernel was launched" in reason for reason in report.incomplete)
        assert report.checked == ()


@pytest.mark.parametrize("kind", NOT_EXECUTED)
def test_an_access_that_is_not_modelled_leaves_the_rest_to_the_check(kind: str) -> None:
    """What such an instruction touches is unknown; a race of plain accesses beside it is found."""
    report = _report(SWITCH.replace("INSTRUCTION", NOT_EXECUTED[kind]), "auto")
    assert ([finding.kind for finding in report.findings], "global-memory" in report.checked) == (["global-race"], True)
    assert any("which is not modelled" in line for line in report.incomplete)


def test_too_many_ctas_that_synchronise_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "global-memory" in _report(LAST, "auto").checked
    monkeypatch.setattr(launch_sizes, "MOST_TOGETHER", 3)
    _check_left_out(LAST, "4 CTAs that may synchronise through memory are too many")
    assert "global-memory" in _report(LAST, "on").checked


def test_logs_that_are_too_large_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "MOST_BYTES", 1)
    monkeypatch.setattr(shares, "MORE", 1)
    _check_left_out(LOADED, "the logs of a launch take more than")
    assert _report(LOADED, "on").verdict == "incomplete"
    assert "global-memory" in _report(FINE, "on").checked  # it is proven, and has no log


PAIRS = 28  # of 8 sets of 8 CTAs: two sets have logs of 24


def _too_long_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "MOST_BYTES", 24 * _bytes_of_a_log(monkeypatch))
    monkeypatch.setattr(shares, "MORE", 1)


def _shifted(shift: int) -> consan.Kernel:
    """Each thread stores to what the one that is so many behind it reads. Another launch does the same."""
    return consan.Kernel(LOADED.replace("out[i + out[i]] = 1", f"out[i + {shift} + out[i]] = 0"), arch="sm_90")


@pytest.mark.parametrize("choice", ["auto", "on"])
@pytest.mark.parametrize("shift", [0, 16, 8 * 32, 33 * 32])
def test_pairs_of_sets_are_compared_where_all_logs_are_too_long(shift: int, choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A race is within a CTA, between neighbours, or between CTAs of any two sets."""
    _too_long_for_all(monkeypatch)
    report = consan.launch(_shifted(shift), 64, 32, [np.zeros(64 * 32 + 2048, np.int32)], device="cpu", global_memory=choice)
    assert report.verdict == ("violations" if shift else "clean")
    assert any(finding.kind == "global-race" for finding in report.findings) == bool(shift)
    (row,) = coverage.rows(report)
    assert (row.state, row.checked, row.launches, row.why) == ("checked", 1, 1, ())
    assert report.kernels[0].global_accesses == 2 * 64 * 32


def _launches_until(shift: int, times: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[consan.Report]:
    """The report behind each launch. A launch has time for one pair."""
    _too_long_for_all(monkeypatch)
    monkeypatch.setattr(launch_check, "LONGEST_PAIRS", 0.0)
    session = Session(SessionOptions.of({"device": "cpu", "global_memory": "auto"}), private=True)
    prepared, memory = session.prepare(_shifted(shift).ptx), session.backend.alloc(4 * (64 * 32 + 2048))
    for _ in range(times):
        session.launch(prepared, "k", (64, 1, 1), (32, 1, 1), [memory.to_bytes(8, "little")])
        yield session.report()
    session.close()


def test_later_launches_compare_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, report in enumerate(_launches_until(0, PAIRS, monkeypatch), start=1):
        (row,) = coverage.rows(report)
        if number < PAIRS:
            assert (row.state, report.verdict) == ("not checked", "incomplete")
            assert f"{number} of 28 pairs of 8 sets of its CTAs were compared" in row.why[0]
            assert "global-memory" not in report.checked
    assert (row.state, row.why, report.verdict) == ("checked", (), "clean")
    assert "global-memory" in report.checked


def test_a_race_of_one_pair_is_found_by_the_launch_that_compares_it(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = [report.verdict for report in _launches_until(33 * 32, PAIRS, monkeypatch)]
    assert verdicts[0] == "incomplete"
    assert verdicts[-1] == "violations"


FAULTS = {
    "a pair is never compared": lambda self, pair, clusters: _members(self, (0, 1), clusters),
    "the last CTA of a set is in none": lambda self, pair, clusters: [each for each in _members(self, pair, clusters) if each % 8 != 7],
}
_members = Pairs.members


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_pairs(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _too_long_for_all(monkeypatch)
    monkeypatch.setattr(Pairs, "members", FAULTS[fault])
    shift = 33 * 32 if "pair is" in fault else 16
    kernel = _shifted(shift)
    if "last" in fault:  # the only CTA that races with another one
        kernel = consan.Kernel(LOADED.replace("out[i + out[i]]", "out[i + 16 * (blockIdx.x == 7) + out[i]]"), arch="sm_90")
    report = consan.launch(kernel, 64, 32, [np.zeros(64 * 32 + 2048, np.int32)], device="cpu", global_memory="auto")
    with pytest.raises(AssertionError):
        assert report.verdict == "violations"


def _bytes_of_a_log(monkeypatch: pytest.MonkeyPatch) -> int:
    """The size of the log of a CTA of LOADED."""
    seen, whole = set[int](), Launch.histories

    def histories(self: Launch, clusters: Any) -> list[Any]:
        found = whole(self, clusters)
        seen.update(history.log.nbytes for history in found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Launch, "histories", histories)
        _report(LOADED, "auto")
    (nbytes,) = seen
    return nbytes


@pytest.mark.parametrize(
    ("room", "choice", "verdict"),
    [
        *((1, choice, "incomplete") for choice in ("auto", "on", "off")),  # too little also for logs without global memory
        *((1 << 13, choice, verdict) for choice, verdict in (("auto", "incomplete"), ("on", "incomplete"), ("off", "clean"))),
    ],
)
def test_a_limit_that_is_too_small_is_no_clean_verdict(room: int, choice: str, verdict: str) -> None:
    report = consan.launch(
        consan.Kernel(LAST, arch="sm_90"), 4, 32, [np.zeros(128, np.int32)], device="cpu", global_memory=choice, trace_memory=room
    )
    assert (report.verdict, report.findings, "global-memory" in report.checked) == (verdict, (), False)
    assert sum(TOO_SMALL in line for line in report.incomplete) == (verdict == "incomplete")  # it is said once


def test_memory_that_the_device_does_not_have_is_no_clean_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(self: LogMemory, name: str, nbytes: int, *, clear: bool = True) -> int:
        raise EnvironmentFailure("out of memory")

    monkeypatch.setattr(LogMemory, "take", take)
    report = _report(LAST, "auto")
    assert (report.verdict, "global-memory" in report.checked) == ("incomplete", False)
    assert "1 launch of k could not be recorded: the device has no " in report.incomplete[-1]


@pytest.mark.parametrize(("source", "accesses", "compared", "proven"), [(FINE, 128, 0, 128), (RACY, 128, 128, 0), (LOADED, 256, 0, 0)])
def test_what_needed_no_comparison_is_counted(source: str, accesses: int, compared: int, proven: int) -> None:
    """A report counts the accesses, those of bytes that another thread writes, and those that are proven before the launch."""
    report = _report(source, "auto")
    (kernel,) = report.kernels
    assert (kernel.global_accesses, kernel.global_compared, kernel.global_proven) == (accesses, compared, proven)
    met = (
        f"; {compared} touch bytes that another thread of the launch writes, and were compared"
        if compared
        else "; none touches bytes that another thread of the launch writes"
    )
    how = ", proven free of races before their launch" if proven else met
    assert f"global: {accesses} accesses{how}" in " ".join(render(report, details=True).split())
    shown = json.loads(render(report, "json"))["kernels"][0]
    assert (shown["global_compared"], shown["global_proven"]) == (compared, proven)
    (kernel,) = _report(source, "off").kernels
    assert kernel.global_accesses == 0


KERNELS = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "racy", "kinds"),
    [
        ("global/bulk_load_beside_stores", True, {"data-race"}),  # before the issue of the copy: no missing wait
        ("global/bulk_load_beside_stores", False, set()),
        ("global/flag_then_bulk_load", False, set()),  # ordered by a flag, which was not recorded
        ("clean/bulk_results", False, set()),  # an atomic operation beside a reduction in bulk
    ],
)
def test_copies_of_a_cta_are_checked_where_global_memory_is_not(name: str, racy: bool, kinds: set[str]) -> None:
    spec = twin_file.read(KERNELS / f"{name}.cu")
    values = spec.parameters(spec.fresh_args())
    kernel = twin_file.kernel(spec.path, racy)
    report = consan.launch(kernel, spec.grid, spec.block, values, smem=spec.smem, device="cpu", global_memory="off")
    assert {finding.kind for finding in report.findings} == kinds
