"""The racy twins again: what stands between the accesses is named, with line and reason; races read the same in each schedule.

A row: the twin; what the culprit's line holds; what the message says of it; what the fix asks for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file

import consan
from consan.reports import render
from consan.reports.model import CULPRIT

TWINS = Path(__file__).parent / "twins"
READ = Path(__file__).parents[1] / "reports_read" / "kernels"
SEEDS = range(8)

CULPRITS = (
    ("warp_private_regions", "__syncwarp", "orders the lanes of one warp only", "replace the __syncwarp() at"),
    ("named_barrier_wrong_id", "bar.sync", "waits at named barrier", "use one barrier id"),
    ("named_barrier_arrive_is_no_wait", "bar.arrive", "arrives and does not wait", "wait at named_barrier_arrive_is_no_wait.cu:17"),
    ("named_barrier_early_release", "ARRIVE(EMPTY)", "comes before the read at named_barrier_early", "move the"),
    ("named_barrier_partial", "bar.sync 1", "does not execute the bar.sync 1", "pass the bar.sync 1"),
    ("reduction_last_levels", "__syncthreads()", "did not both pass it", "out of its branch"),
    ("fence_is_not_a_barrier", "__threadfence_block", "makes no thread wait", "put __syncthreads() beside"),
    ("shuffle_is_not_a_fence", "sync", "exchanges registers and orders no memory", "put __syncwarp() beside"),
    ("mbarrier_relaxed_arrive", "RELAXED", "is relaxed", "write .release"),
    ("mbarrier_relaxed_wait", "RELAXED", "is relaxed", "write .acquire"),
    ("mbarrier_relaxed_wait_for_copy", "RELAXED", "acquires nothing", "write .acquire"),
    ("mbarrier_released_early", "ARRIVE(&empty)", "comes before the read", "move the mbarrier.arrive"),
    ("mbarrier_lanes_release", "ARRIVE(&empty)", "comes before the read", "move the mbarrier.arrive"),
    ("mbarrier_wrong_parity", "WAIT", "does not wait for phase 0", "which has parity 0"),
    ("cluster_relaxed_arrive", "relaxed", "is relaxed", "barrier.cluster.arrive.release"),
    ("cluster_arrive_cta_scope", "", "releases at .cta scope", "mbarrier.arrive.release.cluster"),
    ("cluster_wait_cta_scope", "", "acquires at .cta scope", "write .acquire.cluster"),
    ("cp_async_off_by_one", "WAIT", "wait_group 2 at cp_async_off_by_one.cu:30 lets the 2 newest groups", "instead of 2"),
    ("cp_async_wait_before_commit", "commit", "comes after the cp.async.wait_group 0", "before the cp.async.wait_group 0"),
    ("cp_async_never_committed", "wait", "waits for committed groups only", "put cp.async.commit_group after"),
    ("cp_async_wait_by_other_thread", "wait", "does not execute the cp.async.wait_group 0", "in every thread that executes"),
    ("bulk_store_wait_by_other", "bulk_wait_read", "which waits for the groups of its own thread only", "in every thread that executes"),
    ("bulk_store_wait_no_barrier", "__syncthreads()", "comes before the cp.async.bulk.wait_group.read 0", "move the __syncthreads()"),
    ("bulk_result_read_wait", "bulk_wait_read", "until the source has been read", "without .read"),
    ("bulk_result_wait_no_barrier", "__syncthreads()", "and no barrier comes after it", "move the __syncthreads()"),
    ("wgmma_epilogue_over_operand", "wgmma_wait<1>", "wgmma.wait_group 1 at wgmma_epilogue_over_operand.cu", "instead of 1"),
    ("global_store_fence_too_early", "fence_async_global", "comes before the write", "move the fence.proxy.async.global"),
    ("global_store_no_proxy_fence", "fence_async_shared", "is for shared memory", "that of global memory"),
    ("tma_fence_by_all_but_issuer", "fence_async_shared", "is in a branch or loop", "out of its branch or loop"),
    ("tma_epilogue_issuer_fences", "fence_async_shared", "comes after the __syncthreads()", "before the __syncthreads()"),
)

#: The same where the finding has one access or none waited: number of accesses, then as above.
EARLY = (
    ("wgmma_operand_overwritten", 3, "wgmma_wait<0>", "comes only after the write", "before the __syncthreads() at"),
    ("mbarrier_wrong_parity", 4, "ARRIVE(&full)", "comes too late for this wait", "move it before the barrier at"),
    ("bulk_store_source_overwritten", 3, "__syncthreads", "does not wait for the bulk store", "after the cp.async.bulk.commit_group at"),
    ("bulk_store_at_exit", 2, "bulk_commit", "no wait follows the cp.async.bulk.commit_group", "in the same thread"),
    ("cp_async_at_exit", 2, "WAIT(1)", "leaves the last group in flight", "instead of 1"),
    ("wgmma_no_proxy_fence", 3, "__syncthreads", "orders the threads only", "before the __syncthreads() at"),
    ("cp_async_then_bulk_store", 3, "__syncthreads", "orders the threads only", "after the cp.async.wait_all at"),
    ("uninitialized_tail", 2, "tile[", "tile is written at uninitialized_tail.cu", "also write the rest of what uninitialized_tail.cu:"),
    ("bulk_store_uninitialised", 2, "tile[", "some of them, such as tile[48..51]; tile is written at", "write all 256 bytes that"),
)

#: Races that the schedule shows now as RAW, now as WAR: the twin, and the one sentence of it.
ORDERS = (
    ("raw", "RAW", "the read at raw.cu:17 can run before the write at raw.cu:13 has stored its value"),
    ("mbarrier_not_waited", "RAW", "the read at mbarrier_not_waited.cu:22 can run before the write at mbarrier_not_waited.cu:16"),
    ("war_loop", "WAR", "the write at war_loop.cu:14, in the next iteration, can overwrite the bytes before the read at war_loop.cu:16"),
    ("reduction_last_levels", "RAW", "the read at reduction_last_levels.cu:19, in the next iteration, can run before the write"),
    ("reduction_no_syncwarp", "RAW", "the read at reduction_no_syncwarp.cu:20, in the next iteration, can run before the write"),
    ("histogram_no_atomics", "WAR", "the write at histogram_no_atomics.cu:15 can overwrite what another thread has stored"),
    ("ring_three_stages", "WAR", "the write at ring_three_stages.cu:23 can overwrite the bytes before the read at ring_three_stages.cu:21"),
    ("waw", "WAW", "the write at waw.cu:11 and the write at waw.cu:17 can land in either order"),
)


def _racy(name: str, seeds: Any = (0,)) -> list[Any]:
    spec = twin_file.read(TWINS / f"{name}.cu")
    kernel = consan.Kernel(spec.path, entry="kernel", arch=spec.arch, defines={"RACY": 1})
    launch = {"smem": spec.smem, "device": "cpu", "policy": spec.policy}
    return [consan.launch(kernel, spec.grid, spec.block, spec.parameters(spec.fresh_args()), seed=seed, **launch) for seed in seeds]


def _line(report: Any, access: Any) -> str:
    return str(report.sources.get(access.file, {}).get(access.line, ""))


@pytest.mark.parametrize(("name", "source", "sentence", "fix"), CULPRITS, ids=[row[0] for row in CULPRITS])
def test_the_culprit_is_named_with_its_line(name: str, source: str, sentence: str, fix: str) -> None:
    (report,) = _racy(name)
    told = [finding for finding in report.findings if finding.accesses[-1].role == CULPRIT]
    text = render(report, notes=True)
    assert told, text
    finding = told[0]
    assert [access.role == CULPRIT for access in finding.accesses[:3]] == [False, False, True]
    assert source.lower() in _line(report, finding.accesses[2]).lower()
    assert sentence in finding.message
    assert fix in finding.fix
    assert "  (3) culprit" in text


@pytest.mark.parametrize(("name", "accesses", "source", "sentence", "fix"), EARLY, ids=[row[0] for row in EARLY])
def test_the_fix_uses_what_the_code_has(name: str, accesses: int, source: str, sentence: str, fix: str) -> None:
    (report,) = _racy(name)
    finding = next(finding for finding in report.findings if finding.accesses[-1].role == CULPRIT)
    assert len(finding.accesses) == accesses
    assert source in _line(report, finding.accesses[-1])
    assert sentence in finding.message
    assert fix in finding.fix
    assert "hopper.cuh" not in finding.message + finding.fix


def test_a_lost_update_asks_for_an_atomic_and_not_for_a_barrier() -> None:
    (report,) = _racy("histogram_no_atomics")
    race, note = report.findings
    assert "update the same bytes" in race.message
    assert race.fix.startswith("make the update one atomic operation (atomicAdd")
    assert note.severity == "note"
    assert "updates are lost" in note.missing
    assert "nothing" not in note.missing + note.fix


SCAN = """extern "C" __global__ void scan(int* out) {
    __shared__ int sums[32];
    int lane = threadIdx.x;
    sums[lane] = lane;
    __syncwarp();
    int left = lane ? sums[lane - 1] : 0;
    sums[lane] += left;
    __syncwarp();
    out[lane] = sums[lane];
}
"""


def test_a_scan_of_a_warp_is_not_told_to_use_atomics_only(tmp_path: Path) -> None:
    """The record of the warp's readers may name the lane that updates its own element: the fix for that case is told too."""
    (tmp_path / "scan.cu").write_text(SCAN)
    (race,) = consan.launch(consan.Kernel(tmp_path / "scan.cu"), 1, 32, [np.zeros(32, np.int32)], device="cpu").findings
    assert race.severity == "warning"
    assert "put __syncwarp() after their reads and before scan.cu:7" in race.fix
    (tmp_path / "fixed.cu").write_text(SCAN.replace("    sums[lane] +=", "    __syncwarp();\n    sums[lane] +="))
    assert not consan.launch(consan.Kernel(tmp_path / "fixed.cu"), 1, 32, [np.zeros(32, np.int32)], device="cpu").findings


@pytest.mark.parametrize("name", ["raw", "waw", "war_loop", "mbarrier_other_lane"])
def test_where_nothing_stands_between_there_is_no_culprit(name: str) -> None:
    (report,) = _racy(name)
    assert report.findings
    assert all(access.role != CULPRIT for finding in report.findings for access in finding.accesses)


@pytest.mark.parametrize(("name", "hazard", "sentence"), ORDERS, ids=[row[0] for row in ORDERS])
def test_a_race_reads_the_same_in_each_schedule(name: str, hazard: str, sentence: str) -> None:
    found = [finding for report in _racy(name, SEEDS) for finding in report.findings]
    told = {(f.hazard, f.message, f.fix) for f in found if sentence in f.message}
    assert {each[0] for each in told} == {hazard}
    assert len(told) == 1
    assert [f.message for f in found if f.hazard != "WAW" and sentence not in f.message] == []


def test_two_iterations_that_meet_in_one_of_two_buffers() -> None:
    (report,) = _racy("double_buffer")
    (race,) = report.findings
    assert "all of these accesses are in tile[0], one of the 2 parts of tile" in race.message
    assert "between two iterations of the loop at double_buffer.cu:" in race.fix
    assert "to use the parts of tile in turn, let the first index change at double_buffer.cu:21 and double_buffer.cu:19" in race.fix


#: Accesses outside their array: the index in the message, and the repair.
BOUNDS = (
    ("out_of_bounds", "this is element 128, and the last one is 127", "at most 127, and reaches 191; correct it; or, if it is"),
    ("halo_index", "this is row[64], and the last one is row[63]", "at most 63, and reaches 64"),
    ("left_neighbour", "this is row[-1], and the first one is row[0]", "at least 0, and reaches -1"),
    ("output_too_small", "this is element 2, and the last one is 1; the launch ended there", "larger: at least 3 elements"),
)


@pytest.mark.parametrize(("name", "message", "fix"), BOUNDS, ids=[row[0] for row in BOUNDS])
def test_an_index_outside_its_array(name: str, message: str, fix: str) -> None:
    own = READ / f"{name}.cu"
    spec = twin_file.read(own if own.exists() else TWINS / f"{name}.cu")
    kernel = consan.Kernel(spec.path, entry="kernel", arch=spec.arch, defines={"RACY": 1})
    report = consan.launch(kernel, spec.grid, spec.block, spec.parameters(spec.fresh_args()), smem=spec.smem, device="cpu")
    finding = next(finding for finding in report.findings if finding.kind == "out-of-bounds")
    assert message in finding.message
    assert fix in finding.fix
