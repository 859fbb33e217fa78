"""What a report of the recording engine says beside kind and places: the order of the two sides, the reason, the culprit, the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from leaving_support import SHADOW
from record_support import launch

import consan
from consan._errors import NotSupported
from consan.backends.virtual import VirtualBackend
from consan.reports.formats import text
from consan.session.modules.device import Device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

# Kernel, kind, hazard, and words of the message. Without the rule that is named the report says something else.
SAID = (
    ("mbarrier_mailbox", "data-race", "WAR", "can overwrite the bytes before the read"),  # the reader knows the value before
    ("named_barrier_early_release", "data-race", "WAR", "can overwrite the bytes before the read"),
    ("cp_async_refill_too_early", "data-race", "WAR", "can overwrite the bytes before the read"),  # all know an earlier copy
    ("bulk_store_no_barrier", "data-race", "RAW", "can come before the write"),  # the sides come as in the text
    ("mbarrier_lanes_release", "missing-wait", "RAW", "and lets the bytes be overwritten"),  # the reader waits by itself
    ("bulk_result_wait_no_barrier", "missing-wait", "RAW", "nothing orders that wait before (2); the __syncthreads()"),
    ("bulk_store_wait_no_barrier", "missing-wait", "WAR", "nothing orders that wait before (2); the __syncthreads()"),
    ("cp_async_not_waited_bulk_store", "missing-wait", "RAW", "touches bytes that the cp.async"),
    ("cp_async_wait_no_barrier", "missing-wait", "RAW", "was waited for by its own thread only"),
    ("flag_handshake", "data-race", "RAW", "nothing publishes the write before the flag is written"),
    ("flag_handshake_fences", "data-race", "RAW", "no fence or acquire follows the read of the flag"),
    ("acknowledged_before_read", "data-race", "WAR", "has acquired this release and no later one"),
    ("counted_before_write", "data-race", "RAW", "has acquired this release and no later one"),
    ("acknowledged_to_one_lane", "data-race", "WAR", "was waited for by other lanes of the warp than the one of the write"),
    ("mbarrier_empty_waited_by_lane", "data-race", "WAR", "was waited for by other lanes of the warp than the one of the write"),
    ("mbarrier_empty_arrived_by_lane", "data-race", "WAR", "the read at mbarrier_empty_arrived_by_lane.cu:26 is by another lane"),
    ("cluster_st_async_freed_early", "data-race", "WAR", "and lets the bytes be overwritten"),
    ("divergent_stmatrix", "barrier-misuse", None, "went past it"),
)


@pytest.mark.parametrize(("name", "line"), [("lock_of_warps_no_release", 26), ("lock_of_lanes_no_release", 20)])
def test_a_lock_in_shared_memory_lacks_a_fence_and_no_atomic_update(name: str, line: int) -> None:
    report, _ = launch(name, True, "record", global_memory="auto")
    first = report.findings[0]
    assert (first.kind, first.situation) == ("data-race", "no-release")
    assert f"before the flag is written at {name}.cu:{line}" in first.fix


# The finding that speaks, and a part of its repair.
SPEAKING = (
    ("last_warp_no_release", "data-race", "no-release", "put __threadfence_block() after last_warp_no_release.cu:17"),
    ("cluster_st_async_overtakes", "data-race", "refilled-too-early", "wait for empty before the asynchronous store at"),
    ("cluster_halves_not_freed", "missing-wait", "not-waited", "wait for empty, on which threads arrive at"),
    ("leaders_add_plainly", "data-race", "no-barrier@update", "make the update one atomic operation"),
    ("swizzle_of_lanes_collides", "data-race", "no-warp-sync@one-store", "give each lane an element of its own"),
)


@pytest.mark.parametrize(("name", "kind", "situation", "words"), SPEAKING, ids=[row[0] for row in SPEAKING])
def test_the_cause_speaks_first(name: str, kind: str, situation: str, words: str) -> None:
    report, _ = launch(name, True, "record", global_memory="auto")
    first = report.findings[0]
    assert (first.kind, first.situation) == (kind, situation)
    assert words in first.fix


@pytest.mark.parametrize(("name", "kind", "hazard", "words"), SAID, ids=[row[0] for row in SAID])
def test_what_is_said_of_a_pair(name: str, kind: str, hazard: str | None, words: str) -> None:
    report, _ = launch(name, True, "record", global_memory="auto")
    (finding,) = report.findings
    assert {kernel.engine for kernel in report.kernels} == {"record"}
    assert (finding.kind, finding.hazard) == (kind, hazard)
    assert words in finding.message


def test_a_copy_in_flight_at_the_end_has_its_bytes() -> None:
    report, _ = launch("mbarrier_wrong_parity", True, "record")
    end = next(finding for finding in report.findings if finding.kind == "lifetime")
    assert end.accesses[0].bytes == (128, 256)


@pytest.mark.parametrize("name", ["bulk_bytes_never_come", "cp_async_not_waited_bulk_store", "raw", "mbarrier_phase_lap"])
def test_the_instructions_that_are_watched(name: str) -> None:
    inline, recorded = (launch(name, True, engine)[0].kernels[0] for engine in ("inline", "record"))
    assert recorded.engine == "record"
    assert (recorded.memory_sites, recorded.sync_sites) == (inline.memory_sites, inline.sync_sites)


def test_a_wait_whose_result_is_ignored_is_none() -> None:
    report, _ = launch("mbarrier_result_ignored", True, "record")
    assert [one.situation for one in report.findings if one.kind == "missing-wait"] == ["not-waited"]


def test_a_lap_has_the_thread_that_arrived_before() -> None:
    (finding,) = launch("mbarrier_phase_lap", True, "record")[0].findings
    assert {access.thread for access in finding.pair} == {(32, 0, 0)}  # thread 0 has initialised the mbarrier


def test_a_proven_deadlock_is_not_incomplete() -> None:
    report, _ = launch("bulk_bytes_never_come", True, "record")
    (finding,) = report.findings
    assert (finding.kind, report.verdict, report.incomplete) == ("deadlock", "violations", ())
    assert [waiter["why"] for waiter in finding.waiters] == ["mbarrier", "mbarrier"]
    assert report.kernels[0].histories == 1


FAULT = """extern "C" __global__ void k(int* out, int shift) {
    __shared__ int row[64];
    int t = threadIdx.x;
    row[t ^ 32] = t;
    int seen = row[t];
    row[t + shift] = seen;
    out[blockIdx.x * 64 + t] = seen;
}
"""


def _faulty(tmp_path: Any, shift: int) -> Any:
    (tmp_path / "k.cu").write_text(FAULT)
    return consan.launch(consan.Kernel(tmp_path / "k.cu"), 3, 64, [np.zeros(192, np.int32), np.int32(shift)], device="cpu", engine="record")


def test_a_launch_that_faults_reports_what_came_before(tmp_path: Any) -> None:
    """Up to the instruction that failed, in a block of the log that was not closed."""
    report = _faulty(tmp_path, 40)
    found = {(finding.kind, finding.pair[0].line, finding.pair[-1].line) for finding in report.findings}
    assert found == {("out-of-bounds", 6, 6), ("data-race", 4, 5), ("data-race", 4, 6), ("data-race", 5, 6)}
    bounds = next(finding for finding in report.findings if finding.kind == "out-of-bounds")
    assert "this is row[64], and the last one is row[63]" in bounds.message
    assert "and reaches 103" in bounds.fix
    assert (report.verdict, report.incomplete) == ("violations", ())


def test_without_the_fault_there_is_no_more(tmp_path: Any) -> None:
    assert {finding.kind for finding in _faulty(tmp_path, 0).findings} == {"data-race"}


class Stopping(VirtualBackend):
    """Ends a launch after it ran, as Ctrl-C or an instruction that is not modelled would."""

    error: type[BaseException] = KeyboardInterrupt

    def launch(self, *args: Any, **options: Any) -> Any:
        super().launch(*args, **options)
        raise self.error("stopped")


@pytest.mark.parametrize("error", [KeyboardInterrupt, NotSupported])
def test_a_launch_that_is_stopped_keeps_its_findings(error: type[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(Stopping, "error", error)
    session = Session(SessionOptions(engine="record"), on=Device(Stopping(), arena_bytes=SHADOW))
    (tmp_path / "k.cu").write_text(FAULT)
    prepared = session.prepare(consan.Kernel(tmp_path / "k.cu").ptx)
    out = session.backend.alloc(4 * 64)
    with pytest.raises(error):
        session.launch(prepared, "k", (1, 1, 1), (64, 1, 1), [out.to_bytes(8, "little"), (0).to_bytes(4, "little")])
    report = session.report()
    assert {finding.kind for finding in report.findings} == {"data-race"}
    assert report.incomplete


def test_the_text_names_what_stands_for_what() -> None:
    report, _ = launch("raw", True, "record")
    assert "recorded:     2 CTAs in 1 launch of 1 kernel, 1 distinct history replayed" in text.render(report, details=True)


SPIN = """extern "C" __global__ void k(int* out, int rounds) {
    __shared__ int row[64];
    int t = threadIdx.x, sum = 0;
    row[t ^ 32] = t;
    out[t] = row[t];
    asm volatile("{ .reg .b32 a; AGAIN: add.u32 a, a, 1; bra AGAIN; }");
    out[t] = sum;
}
"""


def test_a_loop_without_events_ends_the_log_of_what_came_before(tmp_path: Any) -> None:
    (tmp_path / "k.cu").write_text(SPIN)
    args = [np.zeros(64, np.int32), np.int32(0)]
    report = consan.launch(consan.Kernel(tmp_path / "k.cu"), 1, 64, args, device="cpu", engine="record", timeout=1.0)
    assert [finding.kind for finding in report.findings if finding.kind != "deadlock"] == ["data-race"]
    assert report.kernels[0].engine == "record"
