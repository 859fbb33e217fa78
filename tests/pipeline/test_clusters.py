"""Launches in clusters of several CTAs: which variant of the runtime a module gets, and what a report says of ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from consan.__main__ import main
from consan.instrument import cluster_tier
from consan.reports.model import Report
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry barrier(){shape}
{{
  .reg .b32 %r<2>;
  .reg .pred %p<3>;
  .shared .align 8 .b64 full[1];
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [full], 1;
  bar.sync 0;
  @%p1 mbarrier.arrive.shared.b64 _, [full];
AGAIN:
  mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
  @!%p2 bra AGAIN;
  ret;
}}
.visible .entry race()
{{
  .reg .b32 %r<4>;
  .shared .align 4 .b32 word[1];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, word;
  st.shared.u32 [%r2], %r1;
  ret;
}}
.visible .entry peer()
{{
  .reg .b32 %r<6>;
  .shared .align 4 .b32 tile[32];
  mov.u32 %r1, %tid.x;
  shl.b32 %r1, %r1, 2;
  mov.u32 %r2, tile;
  add.u32 %r1, %r1, %r2;
  st.shared.u32 [%r1], 1;
  mov.u32 %r3, %cluster_ctarank;
  xor.b32 %r3, %r3, 1;
  mapa.shared::cluster.u32 %r4, %r1, %r3;
  ld.shared::cluster.u32 %r5, [%r4];
  ret;
}}
.visible .entry starved()
{{
  .reg .b32 %r<4>;
  .reg .pred %p<3>;
  .shared .align 8 .b64 full[1];
  mov.u32 %r1, %cluster_ctarank;
  setp.ne.u32 %p1, %r1, 0;
  mbarrier.init.shared.b64 [full], 2;
  @%p1 bra TOGETHER;
  mbarrier.arrive.shared.b64 _, [full];
AGAIN:
  mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
  @!%p2 bra AGAIN;
TOGETHER:
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ret;
}}
"""
PLAIN, FIXED = KERNEL.format(shape=""), KERNEL.format(shape=" .reqnctapercluster 2, 1, 1")


def launched(text: str, entry: str, cluster: int, grid: int = 4, block: int = 32) -> Report:
    session = Session(SessionOptions(device="cpu"))
    prepared = session.prepare(text)
    session.launch(prepared, entry, (grid, 1, 1), (block, 1, 1), [], cluster=(cluster, 1, 1))
    return session.report()


@pytest.mark.parametrize(("ctas", "tier"), [(1, 0), (2, 2), (3, 4), (4, 4), (6, 8), (8, 8), (9, 16), (16, 16)])
def test_the_variant_is_the_next_power_of_two(ctas: int, tier: int) -> None:
    assert cluster_tier(ctas) == tier


@pytest.mark.parametrize(("text", "cluster"), [(PLAIN, 1), (PLAIN, 2), (PLAIN, 4), (FIXED, 2), (FIXED, 1)])
def test_barriers_of_each_cta_are_its_own(text: str, cluster: int) -> None:
    report = launched(text, "barrier", cluster)
    assert (report.verdict, report.findings, report.incomplete) == ("clean", (), ())


@pytest.mark.parametrize(("cluster", "grid"), [(1, 4), (2, 4), (3, 6), (4, 4)])
def test_a_race_is_told_apart_by_cta(cluster: int, grid: int) -> None:
    """The same place in two CTAs is two places: two threads of one CTA race, and nobody else."""
    report = launched(PLAIN, "race", cluster, grid)
    assert [(finding.kind, finding.hazard) for finding in report.findings] == [("data-race", "WAW")]
    blocks = {access.block for access in report.findings[0].accesses}
    ranks = {access.cluster_rank for access in report.findings[0].accesses}
    assert len(blocks) == len(ranks) == 1
    assert (ranks == {None}) == (cluster == 1)


def test_one_thread_alone_does_not_race_with_its_peers() -> None:
    assert launched(PLAIN, "race", 4, 4, block=1).verdict == "clean"


def test_what_a_peer_wrote_is_named_with_its_cta() -> None:
    report = launched(PLAIN, "peer", 2)
    race = next(finding for finding in report.findings if finding.kind == "data-race")
    write, read = race.accesses
    assert (write.role, read.role) == ("write", "read")
    assert {write.cluster_rank, read.cluster_rank} == {0, 1}
    assert write.block is not None
    assert read.block is not None
    assert write.block[0] ^ read.block[0] == 1
    assert {finding.kind for finding in report.findings} == {"data-race", "lifetime"}


def test_a_deadlock_names_the_ctas() -> None:
    report = launched(PLAIN, "starved", 2, grid=2, block=1)
    (found,) = report.findings
    assert found.kind == "deadlock"
    assert "phase 0 of the mbarrier full (shared offset 0) of the CTA of rank 0" in found.message
    assert "the barrier of the cluster (in the CTA of rank 1)" in found.message
    assert found.missing.startswith("1 of 2 arrivals (the mbarrier full (shared offset 0) of the CTA of rank 0, phase 0)")
    assert {(waiter["why"], waiter["cluster_rank"]) for waiter in found.waiters} == {("mbarrier", 0), ("cluster-barrier", 1)}


def test_a_module_is_instrumented_again_for_a_launch_in_clusters() -> None:
    session = Session(SessionOptions(device="cpu"))
    prepared = session.prepare(PLAIN)
    for cluster in (1, 2, 1, 4):
        session.launch(prepared, "barrier", (4, 1, 1), (32, 1, 1), [], cluster=(cluster, 1, 1))
    report = session.report()
    assert report.verdict == "clean"
    assert sum(kernel.launches for kernel in report.kernels if kernel.name == "barrier") == 4


def test_clusters_are_among_what_is_checked() -> None:
    assert "clusters" in launched(PLAIN, "barrier", 2).checked


def test_a_launch_in_clusters_that_the_session_is_not_told_of_is_incomplete() -> None:
    """As frameworks do that launch by themselves: the module has hooks for one CTA alone."""
    session = Session(SessionOptions(device="cpu", engine="inline"))
    prepared = session.prepare(PLAIN)
    session.backend.launch(prepared.loaded, "peer", (4, 1, 1), (32, 1, 1), [], cluster=(2, 1, 1))
    report = session.report()
    assert (report.verdict, report.findings) == ("incomplete", ())
    assert report.incomplete == ("4 CTAs ran unchecked: in clusters that their module was not instrumented for",)


def test_the_command_line(tmp_path: Path) -> None:
    file, out = tmp_path / "k.ptx", tmp_path / "r.json"
    file.write_text(PLAIN)
    words = ["--device", "cpu", "--grid", "4", "--block", "32", "--format", "json", "-o", str(out)]
    assert main(["check", str(file), "--entry", "barrier", *words, "--cluster", "2", "--strict"]) == 0
    assert [kernel["name"] for kernel in json.loads(out.read_text())["kernels"] if kernel["launches"]] == ["barrier"]
    assert main(["check", str(file), "--entry", "peer", *words, "--cluster", "2"]) == 66
    accesses = json.loads(out.read_text())["findings"][0]["accesses"]
    assert {access["cluster_rank"] for access in accesses} <= {0, 1}
