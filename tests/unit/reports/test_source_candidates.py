"""Candidate lines of the CUDA source: what words move, and waits as the source spells them."""

from __future__ import annotations

import pytest

from consan.reports.source.calls import calls_of
from consan.reports.source.source_candidates import MOST_WAITS, later_waits, moves, waits, waits_of_some
from consan.reports.source.source_patches import block_of

SOURCE = """__global__ void k() {
    for (int k = 0; k < 4; k++) {
        s[t] = x[k];
        ARRIVE(&full[k % 2]);
    }
    for (int k = 0; k < 4; k++) {
        WAIT(&full[k % 2], k / 2 & 1);  // wait(a, b)
        ARRIVE(&empty[k % 2]);
        WAIT(&other, 0);
    }
}
"""
EVERY = range(1, 12)
MOVES = {
    "a line": ("move the write at k.cu:7 before the barrier at k.cu:4", [(7, "before", 4)]),
    "a wait": ("move the wgmma.wait_group at a-b.cu:31 after a-b.cu:29", [(31, "after", 29)]),
    "a release": ("let the read at k.cu:3 come before the release at k.cu:2; or not", [(2, "after", 3)]),
    "a release behind lanes that meet": ("let the read at k.cu:6 come before the release at k.cu:2", [(2, "after", 6), (2, "after", 7)]),
    "a release by a fence and a flag": (
        "let the write at k.cu:9 come before the release at k.cu:8; a fence",
        [(9, "before", 7), (8, "after", 9)],
    ),
    "nothing": ("put __syncthreads() before k.cu:4", []),
}


@pytest.mark.parametrize(("words", "moved"), MOVES.values(), ids=MOVES)
def test_words_that_move_a_line(words: str, moved: list[tuple[int, str, int]]) -> None:
    text = SOURCE.replace("WAIT(&full[k % 2], k / 2 & 1)", "__threadfence()" if "fence" in words else "__syncwarp()")
    assert [(step.own_line, step.where, step.line) for (step,) in moves(text, words, "k.cu")] == moved


def test_a_wait_for_an_mbarrier_that_nobody_waits_for_comes_first() -> None:
    found = [(step.action, step.line, step.spelling) for step in waits(SOURCE, [3], "k.cu", EVERY)]
    assert found[:2] == [("add", 3, "WAIT(&empty[k % 2], (k / 2 & 1) ^ 1)"), ("add", 3, "WAIT(&empty[k % 2], k / 2 & 1)")]
    assert ("alter", 9, "WAIT(&other, 1)") in found
    assert ("alter", 7, "WAIT(&full[k % 2], (k / 2 & 1) ^ 1)") in found
    assert len(found) <= MOST_WAITS
    assert len(set(found)) == len(found)


def test_lines_without_instructions_are_no_waits() -> None:
    assert not list(waits(SOURCE, [3], "k.cu", {3, 4}))
    assert all("empty" not in step.spelling for step in waits(SOURCE, [3], "k.cu", {7, 9}))


def test_the_complement_of_a_complement() -> None:
    text = SOURCE.replace("k / 2 & 1", "(k / 2 & 1) ^ 1")
    assert next(step.spelling for step in waits(text, [3], "k.cu", EVERY)) == "WAIT(&empty[k % 2], k / 2 & 1)"


@pytest.mark.parametrize(("line", "block"), [(3, 3), (4, 3), (8, 7), (2, 2)])
def test_the_first_line_of_a_block(line: int, block: int) -> None:
    assert block_of(SOURCE, line) == block


def test_calls_of_a_line() -> None:
    found = [(each.name, each.arguments) for each in calls_of("if (try_wait(f(a, b), c[1, 2] )) Wait(); // wait(x)", "wait")]
    assert found == [("try_wait", ("f(a, b)", "c[1, 2]")), ("Wait", ("",))]
    assert not list(calls_of("wait(a,", "wait"))


LATE = """__global__ void k() {
    for (int k = 0; k < 4; k++) {
        load(k);
        if (k < 3) wait(bar, k);
        read();
        { wait(inner, 0); }
        wait(last, 1);
    }
    wait(behind, 0);
}
"""


def test_a_wait_below_a_line_of_its_block_comes_before_it() -> None:
    steps = list(later_waits(LATE, 3, "k.cu", EVERY))
    assert [(step.action, step.own_line, step.where, step.line) for step in steps] == [("move", each, "before", 3) for each in (4, 6, 7)]
    assert [step.own_line for step in later_waits(LATE, 3, "k.cu", (7,))] == [7]
    assert list(later_waits(LATE, 7, "k.cu", EVERY)) == []


def test_a_wait_of_some_rounds_between_two_lines_loses_its_condition() -> None:
    (step,) = waits_of_some(LATE, [3, 5], "k.cu", EVERY)
    assert (step.action, step.instruction, step.own_line) == ("leave-out", "condition", 4)
    assert not [*waits_of_some(LATE, [5, 7], "k.cu", EVERY), *waits_of_some(LATE, [3, 5], "k.cu", ())]
