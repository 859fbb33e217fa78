"""What the text adds to a misused barrier: the counts of the threads and where they are computed, and the waits on an mbarrier."""

from __future__ import annotations

from typing import Any

import pytest

from consan.instrument.between import TextRelations
from consan.instrument.ptx import parse
from consan.instrument.sites import Site
from consan.reports.decoding.misuse import explained_misuse
from consan.reports.model import Access, Finding

HEAD = '.version 8.3\n.target sm_90a\n.address_size 64\n.file 1 "k.cu"\n.visible .entry k(.param .u32 p)\n{\n.reg .pred %p<9>;\n'
HEAD += ".reg .b32 %r<9>;\n.shared .align 8 .b64 full;\n.shared .align 8 .b64 empty;\n.shared .align 8 .b64 third;\n"
INDEX, FIRST_WARP = "mov.u32 %r1, %tid.x;", "setp.gt.s32 %p1, %r1, 31;"
SELECT = "selp.b32 %r2, 96, 64, %p1;"
BARRIER, ARRIVE = "bar.sync 1, %r2;", "mbarrier.arrive.shared.b64 _, [full];"
WAIT = "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [full], 1; }"


def told(situation: str, instruction: str, *lines: str, threads: tuple[int, int, int] = (64, 1, 1), **more: Any) -> Finding:
    """The finding about the instruction, which is at k.cu:6, with what the text tells. Other lines are at k.cu:4."""
    places = (f".loc 1 {6 if line == instruction else 4} 5\n{line}" for line in lines)
    text = HEAD + "\n".join(places) + "\nret;\n}\n"
    number = text.splitlines().index(instruction) + 1
    site = Site(1, "k", instruction.split()[0], "barrier", "none", "shared", 0, number, instruction, "k.cu", 6, 5)
    access = Access("barrier", instruction.split()[0], file="k.cu", line=6, column=5, ptx_line=number)
    finding = Finding("barrier-misuse", "k", message="wrong", fix="repair it", accesses=(access,), situation=situation, **more)
    return explained_misuse(finding, site, TextRelations(lambda: parse(text, "k.ptx")), threads)


def test_the_counts_of_the_threads_and_the_line_that_computes_them() -> None:
    finding = told("counts-disagree", BARRIER, INDEX, FIRST_WARP, SELECT, BARRIER)
    assert finding.message == "wrong: 64 in threads 0 to 31 and 96 in threads 32 to 63; the CTA has only 64 threads"
    assert finding.fix.startswith("let k.cu:4, which computes the count, give all threads that meet at k.cu:6 the same one: their number")
    assert [access.line for access in finding.accesses] == [6, 4]


def test_a_count_that_the_cta_can_reach_is_not_compared_with_its_size() -> None:
    finding = told("counts-disagree", BARRIER, INDEX, FIRST_WARP, SELECT, BARRIER, threads=(128, 1, 1))
    assert finding.message == "wrong: 64 in threads 0 to 31 and 96 in threads 32 to 127"
    finding = told("counts-disagree", BARRIER, INDEX, FIRST_WARP, SELECT, BARRIER, threads=(64, 2, 1))
    assert finding.message == "wrong: 64 in 64 threads and 96 in 64 threads"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ((INDEX, "mov.u32 %r2, 64;", BARRIER), "one count"),
        ((INDEX, "add.u32 %r2, %r1, 64;", BARRIER), "too many counts"),
        (("ld.param.u32 %r2, [p];", BARRIER), "unknown"),
    ],
)
def test_nothing_is_added_where_the_text_does_not_tell(lines: tuple[str, ...], why: str) -> None:
    finding = told("counts-disagree", BARRIER, *lines)
    assert (finding.message, finding.fix, len(finding.accesses)) == ("wrong", "repair it", 1), why


def test_the_waits_on_a_lapped_mbarrier() -> None:
    barrier = {"offset": 0, "name": "full"}
    finding = told("phase-lapped", ARRIVE, ARRIVE, WAIT, barrier=barrier)
    assert finding.message == "wrong; full is waited for only at k.cu:4"
    assert [access.line for access in finding.accesses] == [6, 4]
    assert told("phase-lapped", ARRIVE, ARRIVE, barrier=barrier).message == "wrong; no instruction of this kernel waits for full"
    assert told("phase-lapped", ARRIVE, ARRIVE, WAIT, barrier={"offset": 8}).message == "wrong"


def test_a_name_that_the_text_does_not_have_is_not_that_of_another_mbarrier() -> None:
    finding = told("phase-lapped", ARRIVE, ARRIVE, WAIT, barrier={"offset": 8, "name": "dynamic shared memory"})
    assert (finding.message, finding.fix, len(finding.accesses)) == ("wrong", "repair it", 1)


RING = "mbarrier.arrive.shared.b64 _, [empty];", "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [empty], 0; }"


@pytest.mark.parametrize(
    ("lines", "fix"),
    [
        ((ARRIVE, WAIT, *RING), "the wait for empty at k.cu:4 is to hold the next round at k.cu:6 back"),
        ((ARRIVE, WAIT, RING[0]), "wait for empty, on which threads arrive at k.cu:4, before the next round at k.cu:6"),
        ((ARRIVE, *RING), "wait for full before the next round begins, in the threads that arrive on empty at k.cu:4"),
        ((ARRIVE, WAIT, RING[0], RING[0].replace("empty", "third")), "repair it"),
    ],
    ids=["a wait that passes", "no wait for the other one", "no wait for this one", "two others"],
)
def test_what_should_have_held_the_next_round_back(lines: tuple[str, ...], fix: str) -> None:
    assert told("phase-lapped", ARRIVE, *lines, barrier={"offset": 0, "name": "full"}).fix.startswith(fix)
