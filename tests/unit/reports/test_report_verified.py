"""`fix:` and `verified:` name one repair: the words of the catalogue stay where they name what was verified."""

from __future__ import annotations

from dataclasses import replace

import pytest

from consan.reports.catalogue.situations import ISSUED_ONLY, NEVER_FREED, RELEASED_EARLY
from consan.reports.culprits.rules import RULES
from consan.reports.model import CULPRIT, Access, Finding, FixStep, VerifiedFix
from consan.reports.words.frameworks import CUDA, CUTE_DSL, GLUON, PALLAS, PTX, TILELANG, TRITON, WARP, advice
from consan.reports.words.verified import NOT_NAMED, misses_cause, names, order_of, spelling, turn_of, with_fix, with_whole_fixes


def step(action: str, instruction: str, where: str, line: int, spelling: str = "") -> FixStep:
    return FixStep(action, instruction, where, "", "dir/k.cu", line, 40, spelling)


BARRIER = ("bar.sync 0", "__syncthreads()")
NAMED = [
    ("put __syncthreads() after the write at k.cu:5 and before the read at k.cu:9", "add", "before", 9, True),
    ("put __syncthreads() after the write at k.cu:5 and before the read at k.cu:9", "add", "after", 5, True),
    ("put __syncthreads() after the write at k.cu:5 and before the read at k.cu:9", "add", "before", 7, True),
    ("put __syncthreads() after the write at k.cu:5 and before the read at k.cu:9", "add", "after", 9, False),
    ("put __syncthreads() after the write at k.cu:5 and before the read at k.cu:90", "add", "after", 90, False),
    ("put __syncthreads() after the read at k.cu:9 and before the write at k.cu:5 (in a loop: at its end)", "add", "before", 9, False),
    ("put __syncthreads() between k.cu:5 and k.cu:9", "add", "before", 9, True),
    ("put __syncthreads() before the read at k.cu:9; put it before the branch that contains k.cu:9", "add", "before", 9, False),
    ("put __syncwarp() before the read at k.cu:9", "add", "before", 9, False),
    ("move the bar.sync at k.cu:3 after the wait at k.cu:9", "move", "after", 9, True),
    ("move the bar.sync at k.cu:3 after the wait at k.cu:9", "move", "before", 9, False),
    ("move the barrier at k.cu:9 out of its branch", "leave-out", "at", 9, False),
    ("put __syncthreads() between the wait and k.cu:9, or let all lanes wait", "add", "before", 9, True),
    ("put __syncthreads() between the wait and k.cu:9, or let all lanes wait", "add", "after", 9, False),
    ("remove the arrival at k.cu:9", "leave-out", "at", 9, True),
    ("use .noinc at k.cu:9", "alter", "at", 9, True),
    ("use .noinc at k.cu:9", "alter", "at", 8, False),
]


@pytest.mark.parametrize(("text", "action", "where", "line", "named"), NAMED)
def test_words_name_a_repair(text: str, action: str, where: str, line: int, *, named: bool) -> None:
    assert names(text, VerifiedFix((step(action, BARRIER[0], where, line, BARRIER[1]),))) is named


def test_a_branch_without_its_condition() -> None:
    fix = VerifiedFix((step("leave-out", "condition", "at", 3),))
    assert names("move the barrier at k.cu:9 out of its branch or loop", fix)
    assert not names("put __syncthreads() before k.cu:3", fix)


def test_the_fix_names_what_was_verified() -> None:
    finding = Finding("data-race", "k", fix="put __syncthreads() before k.cu:4")
    same, other = (VerifiedFix((step("add", BARRIER[0], "before", line, BARRIER[1]),)) for line in (4, 8))
    assert with_fix(finding, same).fix == finding.fix
    told = with_fix(finding, other)
    assert told.fix == order_of(other) == "put bar.sync 0 (__syncthreads()) before k.cu:8"
    assert with_fix(told, None) == finding
    assert with_fix(told, told.verified) == told


@pytest.mark.parametrize(
    ("framework", "wait", "arrival"),
    [
        (CUTE_DSL, "pipeline.producer_acquire, pipeline.consumer_wait", "pipeline.consumer_release(), or cute.arch.mbarrier_arrive"),
        (TILELANG, "T.barrier_wait", "T.barrier_arrive"),
        (PALLAS, "plgpu.barrier_wait", "plgpu.barrier_arrive"),
        (GLUON, "mbarrier.wait", ""),
        (CUDA, "", ""),
        (WARP, "", ""),
    ],
)
def test_a_repair_in_the_words_of_each_framework(framework: str, wait: str, arrival: str) -> None:
    assert spelling(framework, "mbarrier.try_wait.parity with parity 0 on the mbarrier at shared offset 16") == wait
    assert spelling(framework, "mbarrier.arrive.shared") == arrival


@pytest.mark.parametrize(
    ("framework", "arrival", "wait"),
    [
        (CUTE_DSL, "cute.arch.cluster_arrive()", "cute.arch.cluster_wait()"),
        (PALLAS, "", ""),  # its barriers of a cluster are mbarriers
        (TILELANG, "T.cluster_arrive()", "T.cluster_wait()"),
        (GLUON, "cluster.arrive()", "cluster.wait()"),
        (PTX, "", ""),
        (CUDA, "", ""),
    ],
)
def test_a_barrier_of_the_cluster_in_the_words_of_each_framework(framework: str, arrival: str, wait: str) -> None:
    assert (spelling(framework, "barrier.cluster.arrive"), spelling(framework, "barrier.cluster.wait")) == (arrival, wait)


@pytest.mark.parametrize(
    ("framework", "product", "store", "fence"),
    [
        (
            CUTE_DSL,
            "warpgroup.wait_group(1)",
            "cute.arch.cp_async_bulk_wait_group(0, read=True)",
            'cute.arch.fence_proxy("async.shared", space="cta")',
        ),
        (PALLAS, "plgpu.wgmma_wait(1)", "plgpu.wait_smem_to_gmem(0)", "plgpu.commit_smem()"),
        (TILELANG, "T.wait_wgmma(1)", "T.tma_store_wait(0)", "T.fence_proxy_async()"),
        (GLUON, "warpgroup_mma_wait(1)", "tma.store_wait(0)", "fence_async_shared()"),
        (CUDA, "", "", ""),  # source_patches.py writes the PTX
    ],
)  # fmt: skip
def test_a_wait_for_groups_in_the_words_of_each_framework(framework: str, product: str, store: str, fence: str) -> None:
    assert spelling(framework, "wgmma.wait_group.sync.aligned 1") == product
    assert spelling(framework, "cp.async.bulk.wait_group.read 0") == store
    assert spelling(framework, "cp.async.bulk.wait_group 0") == ""  # the words are those of the .read form
    assert spelling(framework, "fence.proxy.async") == fence


def test_two_lines_with_columns_name_what_lies_between() -> None:
    text = "put fence.acq_rel.gpu after k.cu:5:20 and before the flag is written at k.cu:9"
    assert names(text, VerifiedFix((step("add", "fence.sc.gpu", "after", 6),)))
    assert not names(text, VerifiedFix((step("add", "fence.sc.gpu", "after", 9),)))


def test_a_count_is_no_fix_where_nobody_waits() -> None:
    count = VerifiedFix((step("alter", "mbarrier.init.shared.b64 with a count of 34", "at", 3),))
    unheard = Finding("barrier-misuse", "k", situation="phase-lapped")
    assert misses_cause(count, unheard)
    assert not misses_cause(count, replace(unheard, situation="too-many-arrivals"))


def test_a_scope_that_pallas_chooses_is_for_jax() -> None:
    assert "report a .cta scope between CTAs to JAX" in advice(PALLAS, "scope")
    assert not advice(PALLAS, "missing-wait")


def test_a_barrier_has_the_first_of_its_words() -> None:
    assert spelling(GLUON, "bar.sync 0") == "gl.barrier()"


def test_a_weaker_fence_is_named_by_those_who_have_no_other_word() -> None:
    """`names` takes the fence of the catalogue, whose sentence also names the atomics of the framework, for the one that was verified."""
    words = "put fence.acq_rel.gpu (through tl.inline_asm_elementwise) after k.cu:5 and before the flag is written at k.cu:7"
    assert names(words, VerifiedFix((step("add", "fence.sc.gpu", "after", 5),)))
    assert not names(words, VerifiedFix((step("add", "fence.sc.gpu", "after", 9),)))


def test_what_the_compiler_places_stays_its_matter() -> None:
    tail = advice(TRITON, "missing-wait")
    finding = Finding("missing-wait", "k", fix=f"wait before k.cu:4{tail}")
    other = VerifiedFix((step("add", BARRIER[0], "before", 8),))
    assert tail
    assert with_fix(finding, other).fix == order_of(other) + tail


def test_the_smallest_named_repair_is_tried_first() -> None:
    text = "wait with cp.async.wait_group 0 after the cp.async at k.cu:4 and before the bar.sync 0 at k.cu:9"
    wait, warp, cta = (step("add", each, "before", 9) for each in ("cp.async.wait_group 0", "bar.warp.sync 0xffffffff", "bar.sync 0"))
    order = [(wait,), (wait, warp), (wait, cta)]
    turns = [turn_of(text, VerifiedFix(steps), CUDA) for steps in order]
    assert turns == sorted(turns)
    assert len(set(turns)) == len(turns)
    assert turns[-1] < NOT_NAMED == turn_of(text, VerifiedFix((step("add", "wgmma.fence", "before", 9),)), CUDA)


def test_a_fix_of_a_kernel_is_one_of_all_its_findings() -> None:
    fix = VerifiedFix((step("add", BARRIER[0], "before", 4, BARRIER[1]),))
    one, other = Finding("data-race", "k", verified=fix), Finding("lifetime", "k")
    fixed = lambda *found: [each.verified is not None for each in with_whole_fixes(found)]  # noqa: E731
    assert fixed(one, replace(other, kernel="other")) == [True, False]
    assert fixed(one, other) == [False, False]
    assert fixed(one, replace(other, severity="note")) == [True, False]
    pinned = Finding("register-hazard", "k", severity="warning", situation="written-after-fence")  # asks for nothing
    assert fixed(one, pinned) == [True, False]
    assert fixed(one, replace(pinned, situation="no-fence")) == [False, False]


def test_no_barrier_between_an_arrival_and_a_later_read_is_a_fix() -> None:
    """The arrival lets others overwrite the bytes, so the read behind the barrier may get what comes next."""
    sides = [
        Access(role, op, file="dir/k.cu", line=line)
        for role, op, line in (("write", "st", 3), ("read", "ld", 9), (CULPRIT, "bar.arrive", 6))
    ]
    early = Finding("data-race", "k", cause=RELEASED_EARLY, accesses=tuple(sides))

    def misses(*steps: FixStep) -> bool:
        return misses_cause(VerifiedFix(steps), early)

    barrier = BARRIER[0]
    assert [misses(step("add", barrier, where, line)) for where, line in (("before", 9), ("after", 6), ("before", 7))] == [True] * 3
    assert [misses(step("add", barrier, where, line)) for where, line in (("before", 6), ("after", 9), ("before", 3))] == [False] * 3
    assert misses(step("add", barrier, "before", 9), step("add", barrier, "after", 9))
    assert not misses(step("move", "bar.arrive", "after", 9), step("add", "bar.warp.sync 0xffffffff", "before", 9))
    assert not misses(step("add", "fence.acq_rel.cta", "before", 9))
    assert not misses_cause(VerifiedFix((step("add", barrier, "before", 9),)), replace(early, cause="another"))


def test_a_place_before_a_branch() -> None:
    text = "put __syncwarp() between k.cu:5 and k.cu:9; put it before the branch that contains k.cu:9"
    before = step("add", "bar.warp.sync 0xffffffff", "before", 9, "__syncwarp()")
    assert not names(text, VerifiedFix((before,)))
    assert names(text, VerifiedFix((replace(before, at_condition=True),)))


@pytest.mark.parametrize(("count", "named"), [(4, True), (129, False)])
def test_a_count_is_that_of_the_words(count: int, *, named: bool) -> None:
    text = "initialise bar with 4 at k.cu:9; else let 124 more arrive at k.cu:12"
    assert names(text, VerifiedFix((step("alter", f"mbarrier.init.b64 with a count of {count}", "at", 9),))) is named


def test_the_causes_that_are_looked_for_are_rules_about_culprits() -> None:
    assert {RELEASED_EARLY, ISSUED_ONLY, NEVER_FREED} <= {rule.cause for rule in RULES}
