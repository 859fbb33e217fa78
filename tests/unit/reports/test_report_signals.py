"""Deadlocks of threads that poll a variable: which of its writes can still come, and what they wait behind."""

from __future__ import annotations

from typing import Any

import pytest

from consan.instrument.between import TextRelations
from consan.instrument.ptx import parse
from consan.reports.model import Finding
from consan.reports.waiting import deadlocks
from consan.reports.waiting.deadlocks import Phase, Poll
from consan.reports.waiting.waiters import Waiter, deadlock_of

HEAD = ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .pred %p<9>;\n.reg .b32 %r<9>;\n"
HEAD += ".shared .align 4 .u32 ready;\n"
POLL, BARRIER = "ld.volatile.shared.u32 %r1, [ready];", "bar.sync 0;"
CLEAR, WRITE = "st.shared.u32 [ready], 0;", "st.shared.u32 [ready], %r2;"
LOOP = ("LOOP:", POLL, "@%p1 bra LOOP;")
AGAIN = ("AGAIN:", WRITE, BARRIER, "@%p2 bra AGAIN;")


def deadlock(*lines: str) -> tuple[Finding, Any]:
    """The deadlock in which some threads poll and others wait at the barrier, if there is one; and the PTX line of an instruction."""
    text = HEAD + "\n".join(lines) + "\nret;\n}\n"
    at = {line: number for number, line in enumerate(text.splitlines(), 1)}
    waits = [Waiter((0, 0, 0), 1, 1, "spin", {"ptx_line": at[POLL], "ptx": POLL}, polls=(Poll("ready", variable="ready"),), polled="ready")]
    if BARRIER in at:
        waits.append(Waiter((0, 0, 0), 0, 1, "barrier", {"ptx_line": at[BARRIER], "ptx": BARRIER}, barrier=0))
    return deadlock_of("k", waits, TextRelations(lambda: parse(text, "k.ptx"))), lambda line: f"PTX line {at[line]}"


def culprits(finding: Finding) -> list[str]:
    return [access.ptx for access in finding.accesses]


def test_a_write_behind_a_barrier_is_to_come_before_it_and_the_one_that_ran_is_innocent() -> None:
    finding, at = deadlock(CLEAR, "@%p1 bra SKIP;", *LOOP, "SKIP:", BARRIER, WRITE)
    assert culprits(finding) == [WRITE]
    assert finding.fix == f"move the write at {at(WRITE)} before the barrier at {at(BARRIER)}"
    late = f"the write at {at(WRITE)} comes only after the barrier at {at(BARRIER)}"
    assert finding.message.endswith(f"{late}, and that barrier waits for the threads that poll ready")


def test_a_write_behind_the_loop_itself() -> None:
    finding, at = deadlock(CLEAR, *LOOP, WRITE)
    assert culprits(finding) == [WRITE]
    assert f"move the write at {at(WRITE)} before the loop at {at(POLL)}" in finding.fix


@pytest.mark.parametrize("lines", [(WRITE, *LOOP, BARRIER), (*LOOP, *AGAIN)], ids=["before", "in the loop of the barrier"])
def test_nothing_is_to_be_moved_where_no_write_is_only_behind_the_wait(lines: tuple[str, ...]) -> None:
    finding, _ = deadlock(*lines)
    assert culprits(finding) == [WRITE]
    assert "barrier" not in finding.fix


def test_arrivals_beyond_the_count_are_told() -> None:
    phases = [Phase(0, 1, -1, 1, 0, variable="full"), Phase(8, 32, 2, 2, 0, variable="empty")]
    finding = deadlocks.deadlock("k", [{"why": "mbarrier"}], phases, [])
    assert "1 arrival too many (the mbarrier full (shared offset 0), phase 1)" in finding.missing
    assert "more threads arrive in a phase than mbarrier.init counts" in finding.missing
    assert "one thread of each warp" in finding.fix


@pytest.mark.parametrize(("phase", "pending", "crossed"), [(0, 2, True), (1, 2, False), (0, 1, False)])
def test_threads_at_a_barrier_and_at_the_first_phase_of_an_mbarrier(phase: int, pending: int, crossed: bool) -> None:
    """The producer may have begun with the parity of a phase that is not over yet."""
    finding = deadlocks.deadlock("k", [{"why": "mbarrier"}], [Phase(8, phase, pending, 2, 0, variable="empty")], [0])
    assert ("begins with parity 1" in finding.fix) is crossed
    assert "barrier 0 and phase" in finding.missing
