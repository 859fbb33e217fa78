"""The catalogue: complete, well-formed, and with the wording that each situation deserves."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import report_samples as samples

from consan.reports.catalogue.pages import page, summary
from consan.reports.explanations import explanations
from consan.reports.model import SEVERITIES, AsyncInfo, Buffer, Finding
from consan.reports.words.wording import KINDS, WAITS, describe, infer, place

CATALOGUE = [
    "data-race",
    "missing-wait",
    "missing-proxy-fence",
    "uninitialized-read",
    "barrier-misuse",
    "scope",
    "deadlock",
    "lifetime",
    "register-hazard",
    "tcgen05-misuse",
    "missing-tcgen05-fence",
    "clc-misuse",
    "out-of-bounds",
    "fault",
    "global-race",
    "missing-order",
]
SITUATIONS = [(kind.id, situation) for kind in KINDS.values() for situation in kind.situations]


def race(**second: object) -> Finding:
    return Finding("data-race", "k", hazard="RAW", accesses=(samples.WRITE, replace(samples.READ, **second)))  # type: ignore[arg-type]


def test_the_catalogue_is_that_of_the_specification() -> None:
    assert sorted(KINDS) == sorted(CATALOGUE) == sorted(explanations())


@pytest.mark.parametrize(("kind", "situation"), SITUATIONS)
@pytest.mark.parametrize("accesses", [(), (samples.WRITE,), (samples.COPY, samples.READ)], ids=["none", "one", "two"])
def test_every_template_can_be_filled_in(kind: str, situation: str, accesses: tuple[object, ...]) -> None:
    name, _, hazard = situation.partition("/")
    finding = describe(Finding(kind, "k", hazard=hazard or None, accesses=accesses), name)  # type: ignore[arg-type]
    assert finding.severity in SEVERITIES
    for text in (finding.message, finding.missing, finding.fix):
        assert text or (kind in ("out-of-bounds", "fault") and text == finding.missing), "no edge is missing there"
        assert not re.search(r"[{}]|None", text)
        assert text.isascii()


@pytest.mark.parametrize("operation", WAITS)
def test_every_operation_has_a_wait_that_can_be_filled_in(operation: str) -> None:
    copy = replace(samples.COPY, asynchronous=AsyncInfo(operation))
    finding = describe(Finding("missing-wait", "k", accesses=(copy, samples.READ)), "not-waited", leave=2, barrier="the full barrier")
    assert "{" not in finding.missing + finding.fix


@pytest.mark.parametrize(
    ("finding", "situation"),
    [
        (race(), "no-barrier"),
        (race(warp=5), "no-warp-sync"),
        (race(warp=5, block=(1, 0, 0)), "cluster"),
        (race(role="atomic read-modify-write"), "atomic"),
        (Finding("data-race", "k", accesses=(samples.WRITE, replace(samples.WRITE, warp=1))), "same-site"),
        (Finding("data-race", "k", accesses=(samples.COPY, replace(samples.WRITE, warp=1, block=samples.COPY.block))), "copy-not-awaited"),
        (Finding("data-race", "k", accesses=(replace(samples.COPY, role="write", asynchronous=None), samples.COPY)), "no-warp-sync"),
        (Finding("missing-wait", "k", accesses=(samples.COPY, samples.READ)), "not-waited"),
        (Finding("missing-wait", "k", accesses=(samples.COPY, samples.COPY)), "overlapping-copies"),
        (Finding("uninitialized-read", "k", accesses=(samples.READ,)), "general"),
        (Finding("uninitialized-read", "k", accesses=(samples.READ, samples.WRITE)), "written-later"),
        (Finding("out-of-bounds", "k", accesses=(samples.READ,)), "shared"),
        (Finding("out-of-bounds", "k", accesses=(replace(samples.READ, space="global"),)), "general"),
        (Finding("deadlock", "k"), "general"),
    ],
)
def test_the_situation_follows_from_the_accesses(finding: Finding, situation: str) -> None:
    assert infer(finding) == situation


@pytest.mark.parametrize(
    ("hazard", "missing", "fix"),
    [
        ("RAW", "__syncthreads()", "after the write at reduce.cu:5 and before the read at reduce.cu:11"),  # the call, not the helper
        ("WAR", "__syncthreads()", "in a loop: at the end of its body"),
        ("WAW", "__syncthreads()", "give each thread bytes of its own"),
    ],
)
def test_a_race_between_warps_asks_for_a_barrier(hazard: str, missing: str, fix: str) -> None:
    finding = describe(replace(race(), hazard=hazard), "no-barrier")
    assert finding.severity == "error"
    assert missing in finding.missing
    assert fix in finding.fix


def test_a_race_inside_a_warp_is_an_error_that_asks_for_syncwarp() -> None:
    finding = describe(race(warp=5))
    assert finding.severity == "error"
    assert "__syncwarp()" in finding.missing


def test_writers_of_one_value_are_a_warning() -> None:
    assert describe(replace(race(), hazard="WAW"), "same-value").severity == "warning"


def test_unused_uninitialised_bytes_are_a_note() -> None:
    finding = Finding("uninitialized-read", "k", accesses=(samples.READ,))
    assert describe(finding).severity == "error"
    assert describe(finding, "unused").severity == "note"


@pytest.mark.parametrize(
    ("situation", "missing", "fix"),
    [
        ("not-waited", "that covers group 2 before this read: cp.async.wait_group", "cp.async.wait_group 1 (__pipeline_wait_prior(1))"),
        ("not-committed", "cp.async.commit_group between the copy and its wait", "commit with cp.async.commit_group after PTX line 99"),
        ("waited-no-barrier", "a barrier after the wait", "__syncthreads() after the wait for group 2 and before reduce.cu:11"),
        ("source-overwritten", "before the source is overwritten", "cp.async.wait_group 1"),
        (
            "global-source-overwritten",
            "before its source is overwritten",
            "cp.async.wait_group 1 (__pipeline_wait_prior(1)) in the thread that",
        ),
    ],
)
def test_a_copy_in_flight_names_its_group_and_the_wait(situation: str, missing: str, fix: str) -> None:
    finding = describe(Finding("missing-wait", "k", hazard="RAW", accesses=(samples.COPY, samples.READ)), situation, leave=1)
    assert missing in finding.missing
    assert fix in finding.fix


def test_bytes_and_places_are_named() -> None:
    finding = Finding("uninitialized-read", "k", accesses=(samples.READ,), buffer=Buffer("tile", "shared", 8, 1))
    assert "4 bytes at offset 640 of tile" in describe(finding).message
    assert place(samples.READ) == "reduce.cu:8"
    assert place(replace(samples.READ, line=0)) == "PTX line 75"


@pytest.mark.parametrize("kind", CATALOGUE)
def test_every_kind_has_a_page(kind: str) -> None:
    text = page(kind)
    assert text.startswith(f"{kind}: ")
    for part in ("PTX ISA: ", "\nWrong", "Right:", "How to fix it: "):
        assert part in text
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 110
    assert explanations()[kind].racy != explanations()[kind].fixed


def test_the_summary_lists_every_kind() -> None:
    assert all(f"  {kind} " in summary() for kind in CATALOGUE)


@pytest.mark.parametrize(
    ("rank", "words"), [(0, "in every thread that uses the bytes"), (1, "a thread can wait at the mbarriers of its own CTA only")]
)
def test_nobody_is_told_to_wait_at_the_mbarrier_of_another_cta(rank: int, words: str) -> None:
    copy = replace(samples.COPY, asynchronous=AsyncInfo("bulk load"))
    read = replace(samples.READ, cluster_rank=0)
    finding = Finding("missing-wait", "k", accesses=(copy, read), barrier={"offset": 0, "phase": 0, "cluster_rank": rank})
    assert words in describe(finding, "not-waited", barrier="the full barrier").fix


@pytest.mark.parametrize(("rank", "scope"), [(None, ".gpu"), (0, ".cluster")])
@pytest.mark.parametrize("situation", ["arrive-scope", "wait-scope"])
def test_the_scope_that_is_asked_for_includes_the_other_cta(situation: str, rank: int | None, scope: str) -> None:
    accesses = (replace(samples.WRITE, cluster_rank=rank), replace(samples.READ, block=(1, 0, 0), cluster_rank=rank))
    assert f"at {scope} scope" in describe(Finding("scope", "k", accesses=accesses), situation).missing


@pytest.mark.parametrize(("rank", "asked_for"), [(1, "put cluster.sync()"), (0, "put __syncthreads()")])
def test_an_initialisation_is_published_to_who_uses_it(rank: int, asked_for: str) -> None:
    """By the barrier of the cluster, where another CTA than that of the initialisation uses the mbarrier."""
    accesses = (replace(samples.WRITE, role="initialisation", cluster_rank=0), replace(samples.READ, role="arrival", cluster_rank=rank))
    finding = describe(Finding("barrier-misuse", "k", accesses=accesses), "init-not-published")
    assert asked_for in finding.fix


@pytest.mark.parametrize(("first", "freed"), [("tcgen05.ld", True), ("tcgen05.mma", False)])
def test_columns_that_are_freed_before_a_load_is_over(first: str, freed: bool) -> None:
    accesses = (replace(samples.READ, role=first), replace(samples.WRITE, role="tcgen05.dealloc"))
    message = describe(Finding("data-race", "k", hazard="WAR", accesses=accesses), "tensor-no-barrier").message
    assert ("can free" in message) is freed
