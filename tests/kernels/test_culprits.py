"""The racy twins again: what stands between the accesses is named, with line and reason; races read the same in each schedule.

A row: the twin; what the culprit's line holds; what the message says of it; what the fix asks for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import twin_file

import consan
from consan.reports import render
from consan.reports.model import CULPRIT

TWINS = Path(__file__).parent / "twins"
SEEDS = range(8)

CULPRITS = (
    ("warp_private_regions", "__syncwarp", "orders the lanes of one warp only", "replace the __syncwarp() at"),
    ("named_barrier_wrong_id", "bar.sync", "waits at named barrier", "use one barrier id"),
    ("named_barrier_arrive_is_no_wait", "bar.arrive", "arrives and does not wait", "wait at named_barrier_arrive_is_no_wait.cu:17"),
    ("named_barrier_early_release", "ARRIVE(EMPTY)", "gives the bytes back before the read at named_barrier_early", "move the"),
    ("named_barrier_partial", "bar.sync 1", "does not come to the bar.sync 1", "pass the bar.sync 1"),
    ("reduction_last_levels", "__syncthreads()", "did not both pass it", "out of its branch"),
    ("fence_is_not_a_barrier", "__threadfence_block", "makes no thread wait", "put __syncthreads() beside"),
    ("shuffle_is_not_a_fence", "sync", "exchanges registers and orders no memory", "put __syncwarp() beside"),
    ("mbarrier_relaxed_arrive", "RELAXED", "is relaxed", "write .release"),
    ("mbarrier_relaxed_wait", "RELAXED", "is relaxed", "write .acquire"),
    ("mbarrier_relaxed_wait_for_copy", "RELAXED", "acquires nothing", "write .acquire"),
    ("mbarrier_released_early", "ARRIVE(&empty)", "gives the bytes back before the read", "move the mbarrier.arrive"),
    ("mbarrier_lanes_release", "ARRIVE(&empty)", "gives the bytes back before the read", "move the mbarrier.arrive"),
    ("mbarrier_wrong_parity", "WAIT", "does not wait for phase 0", "which has parity 0"),
    ("cluster_relaxed_arrive", "relaxed", "is relaxed", "barrier.cluster.arrive.release"),
    ("cluster_arrive_cta_scope", "", "releases at .cta scope", "mbarrier.arrive.release.cluster"),
    ("cluster_wait_cta_scope", "", "acquires at .cta scope", "write .acquire.cluster"),
    ("cp_async_off_by_one", "WAIT", "wait_group 2 at cp_async_off_by_one.cu:30 leaves group", "instead of 2"),
    ("cp_async_wait_before_commit", "commit", "comes after the cp.async.wait_group 0", "before the cp.async.wait_group 0"),
    ("cp_async_never_committed", "wait", "waits for committed groups only", "put cp.async.commit_group after"),
    ("cp_async_wait_by_other_thread", "wait", "does not come to the cp.async.wait_group 0", "in every thread that executes"),
    ("bulk_store_wait_by_other", "wait_group.read", "it waits for its own thread's groups only", "in every thread that executes"),
    ("bulk_store_wait_no_barrier", "__syncthreads()", "comes before the cp.async.bulk.wait_group.read 0", "move the __syncthreads()"),
    ("bulk_result_read_wait", "wait_group.read", "until the source has been read", "without .read"),
    ("bulk_result_wait_no_barrier", "__syncthreads()", "and no barrier comes after it", "move the __syncthreads()"),
    ("wgmma_epilogue_over_operand", "wait_group", "wgmma.wait_group 1 at hopper.cuh", "instead of 1"),
    ("global_store_fence_too_early", "fence.proxy.async.global", "comes before the write", "move the fence.proxy.async.global"),
    ("global_store_no_proxy_fence", "fence.proxy.async.shared", "is for shared memory", "that of global memory"),
    ("tma_fence_by_all_but_issuer", "fence.proxy.async", "is in a branch or loop", "out of its branch or loop"),
    ("tma_epilogue_issuer_fences", "fence.proxy.async", "comes after the __syncthreads()", "before the __syncthreads()"),
)

#: Races that the schedule shows now as RAW, now as WAR: the twin, and the one sentence of it.
ORDERS = (
    ("raw", "RAW", "the read at raw.cu:17 can run before the write at raw.cu:13 has stored its value"),
    ("mbarrier_not_waited", "RAW", "the read at mbarrier_not_waited.cu:22 can run before the write at mbarrier_not_waited.cu:16"),
    ("war_loop", "WAR", "the write at war_loop.cu:14, in the next iteration, can overwrite the bytes before the read at war_loop.cu:16"),
    ("reduction_last_levels", "RAW", "the read at reduction_last_levels.cu:19, in the next iteration, can run before the write"),
    ("reduction_no_syncwarp", "RAW", "the read at reduction_no_syncwarp.cu:20, in the next iteration, can run before the write"),
    ("histogram_no_atomics", "WAR", "the write at histogram_no_atomics.cu:15 can overwrite the bytes before the read"),
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
    assert [access.role == CULPRIT for access in finding.accesses] == [False, False, True]
    assert source.lower() in _line(report, finding.accesses[2]).lower()
    assert sentence in finding.message
    assert fix in finding.fix
    assert "  (3) culprit" in text


@pytest.mark.parametrize("name", ["raw", "waw", "war_loop", "cp_async_no_wait", "bulk_store_no_proxy_fence", "mbarrier_other_lane"])
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
