"""Clusters in the recording engine: equal clusters are one history, their CTAs are distinguished, and a kept history has all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file
from record_support import KERNELS

import consan
from consan.backends.cpu.semantics.cluster import ClusterBarriers
from consan.session.executing.histories import replay
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

CLUSTERS, THREADS = 24, 48  # threads: not a whole number of warps
SOURCE = f"""
#include "{KERNELS}/mbarrier.cuh"
#include "{KERNELS}/cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out, int odd) {{
    __shared__ float box[64];
    u32 t = threadIdx.x, rank = cluster_rank();
    bool mine = blockIdx.x == odd;
    float value = 0;
    CLUSTER_SYNC_RELAXED();
    BODY
    CLUSTER_SYNC_RELAXED();
    out[blockIdx.x * {THREADS} + t] = value;
}}
"""
BODIES = {
    "an address of a peer": "PUT(peer(box + t, rank ^ 1), 1.f); CLUSTER_SYNC(); if (mine && t == 7) GET(value, peer(box + 60, rank ^ 1));",
    "an arrival": "if (mine) CLUSTER_ARRIVE_RELAXED(); else CLUSTER_ARRIVE(); CLUSTER_WAIT();",
    "order": "PUT(peer(box + t, rank ^ 1), 1.f); if (blockIdx.x / 2 == odd / 2) CLUSTER_SYNC_RELAXED(); else CLUSTER_SYNC();"
    " value = box[t];",
}
# `mapa` of a generic address, and loads and stores that may be anywhere.
GENERIC = """
float* there = nullptr;
asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(box + t), "r"(rank ^ 1));
*(volatile float*)there = 2.f; SYNC value = box[t];
"""


def _launch(body: str, odd: int = 10_000, **options: Any) -> Any:
    kernel = consan.Kernel(SOURCE.replace("BODY", body), entry="kernel", arch="sm_90")
    out = np.zeros(2 * CLUSTERS * THREADS, np.float32)
    return consan.launch(kernel, 2 * CLUSTERS, THREADS, [out, np.int32(odd)], device="cpu", engine="record", **options)


@pytest.mark.parametrize("body", BODIES)
def test_one_cluster_of_many_differs(body: str) -> None:
    report = _launch(BODIES[body], 13)
    (kernel,) = report.kernels
    assert (kernel.engine, kernel.ctas, kernel.histories) == ("record", 2 * CLUSTERS, 2)
    assert {access.block[0] // 2 for finding in report.findings for access in finding.pair} <= {13 // 2}
    kinds = {"an address of a peer": {"uninitialized-read"}, "an arrival": set(), "order": {"data-race"}}[body]
    assert {finding.kind for finding in report.findings} == kinds


def test_equal_clusters_are_one_history() -> None:
    report = _launch(BODIES["order"])
    assert (report.verdict, report.kernels[0].ctas, report.kernels[0].histories) == ("clean", 2 * CLUSTERS, 1)


def test_the_sides_of_a_race_are_in_two_ctas() -> None:
    (finding,) = _launch(BODIES["order"], 13).findings
    write, read = finding.pair
    assert (write.cluster_rank, read.cluster_rank) in ((0, 1), (1, 0))
    assert {write.block[0], read.block[0]} == {12, 13}
    assert finding.count == 2 * THREADS


@pytest.mark.parametrize(("sync", "verdict"), [("CLUSTER_SYNC();", "clean"), ("__syncthreads();", "violations")])
def test_generic_addresses_of_peers(sync: str, verdict: str) -> None:
    report = _launch(GENERIC.replace("SYNC", sync))
    assert (report.verdict, report.kernels[0].engine) == (verdict, "record")


def test_a_kept_history_has_all_ctas_of_its_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = _launch(BODIES["order"], 13, keep_histories=True)
    (file,) = tmp_path.glob(".consan/*.histories")
    session = Session(SessionOptions(device="cpu", engine="record"), private=True)
    again, _ = replay(session, file.name, file.read_bytes())
    assert [str(finding.message) for finding in again.findings] == [str(finding.message) for finding in report.findings]
    assert again.kernels[0].ctas == 2 * CLUSTERS


def test_a_race_of_several_ctas_speaks_for_those_within_one() -> None:
    """A barrier of the CTA would repair one of three pairs."""
    spec = twin_file.read(KERNELS / "twins" / "cluster_slots_cleared.cu")
    values = spec.parameters(spec.fresh_args())
    (finding,) = consan.launch(twin_file.kernel(spec.path, True), spec.grid, spec.block, values, device="cpu").findings
    assert (finding.situation, finding.count) == ("cluster", 3)
    assert len({access.block for access in finding.pair}) == 2


@pytest.mark.parametrize("name", ["cluster_wait_without_arrival", "cluster_wait_nobody_arrives"])
@pytest.mark.parametrize("racy", [True, False], ids=["racy", "fixed"])
def test_a_chip_that_lets_threads_pass_without_an_arrival(name: str, racy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an H100 does (R-CL2): the log has what the ISA forbids, though the launch has ended."""
    wait = ClusterBarriers.wait

    def passing(self: ClusterBarriers, lanes: Any) -> Any:
        return wait(self, lanes) | (self.turn[lanes] < self.waited[lanes])

    monkeypatch.setattr(ClusterBarriers, "wait", passing)
    spec = twin_file.read(KERNELS / "twins" / f"{name}.cu")
    kernel = twin_file.kernel(spec.path, racy)
    report = consan.launch(kernel, spec.grid, spec.block, spec.parameters(spec.fresh_args()), device="cpu", engine="record")
    assert report.incomplete == ()
    found = {(each.kind, each.situation, each.severity, access.line) for each in report.findings for access in each.accesses}
    (line,) = spec.markers["wait"]
    assert found == ({("barrier-misuse", "not-arrived", "error", line)} if racy else set())
