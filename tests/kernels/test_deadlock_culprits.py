"""Deadlocks name the instructions that should have ended the wait, with the repair that follows from the numbers.

A row: the twin; the lines of the culprits (a part of each); what is missing; what the fix asks for.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import twin_file

import consan
from consan.instrument.between import TextRelations
from consan.instrument.ptx import parse
from consan.reports import render
from consan.reports.model import CULPRIT

TWINS = Path(__file__).parent / "twins"

DEADLOCKS = (
    ("deadlock_wrong_count", ("INIT(&bar, COUNT)", "ARRIVE(&bar)"), "124 of the 128 arrivals", "initialise bar with 4 at"),
    (
        "deadlock_trip_counts",
        ("ARRIVE_EXPECT(&full", "k < 4", "k < TILES_READ"),
        "for phase 4 of full: none came",
        "the loop at deadlock_trip_counts.cu:27 completed 4 phases and then ended, while the loop at deadlock_trip_counts.cu:35 waits",
    ),
    ("deadlock_no_drop", ("ARRIVE(&bar)", "INIT(&bar, 64)"), "32 of 64 arrivals", "mbarrier.arrive_drop"),
    ("deadlock_missed_phase", ("ARRIVE(&full)", "ARRIVE(&full)"), "for phase 2 of full", "while this wait is for phase 2"),
    ("deadlock_copies_counted_twice", ("COPIES_ARRIVE(&full)",), "32 of 32 arrivals", "use cp.async.mbarrier.arrive.noinc"),
    ("bulk_bytes_never_come", ("", ""), "expect_tx announced 272, the copy brought 256", "announce 16 bytes fewer"),
    (
        "named_barrier_deadlock",
        ("bar.arrive",),
        "32 of the 64 threads that barrier 1 counts",
        "is on barrier 2: if it is meant for barrier 1",
    ),
    ("deadlock_missing_warps", (), "32 of the 96 threads that barrier 1 counts", "let 32 more threads reach barrier 1"),
    (
        "deadlock_flag_set_too_late",
        ("atomicExch(&ready, 1)",),
        "a write of ready that comes before the barrier at",
        "move the write at deadlock_flag_set_too_late.cu:20 before the barrier at deadlock_flag_set_too_late.cu:18",
    ),
)

#: Deadlocks of which the text does not tell the one repair: the words of the catalogue stay.
WITHOUT = ("deadlock_crossed_barriers", "deadlock_mixed_waits", "deadlock_lock_not_released")


def _deadlock(name: str) -> tuple[consan.Report, consan.Finding]:
    spec = twin_file.read(TWINS / f"{name}.cu")
    kernel = consan.Kernel(spec.path, entry="kernel", arch=spec.arch, defines={"RACY": 1})
    report = consan.launch(
        kernel, spec.grid, spec.block, spec.parameters(spec.fresh_args()), smem=spec.smem, device="cpu", policy=spec.policy
    )
    return report, next(finding for finding in report.findings if finding.kind == "deadlock")


@pytest.mark.parametrize(("name", "lines", "missing", "fix"), DEADLOCKS, ids=[row[0] for row in DEADLOCKS])
def test_the_instructions_that_should_have_ended_the_wait(name: str, lines: tuple[str, ...], missing: str, fix: str) -> None:
    report, finding = _deadlock(name)
    assert [access.role for access in finding.accesses] == [CULPRIT] * len(lines)
    for access, part in zip(finding.accesses, lines, strict=True):
        assert part in report.sources[access.file][access.line]
    assert missing in finding.missing
    assert fix in finding.fix
    text = render(report)
    assert "waits here" in text
    assert text.index("waits here") < text.find("culprit") or not lines


@pytest.mark.parametrize("name", WITHOUT)
def test_nothing_is_claimed_where_the_text_does_not_tell(name: str) -> None:
    assert not _deadlock(name)[1].accesses


UNKNOWN = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 where)
{
    .reg .b32 %r<4>;
    .shared .align 8 .b64 bar;
    ld.param.u32 %r1, [where];
    mov.u32 %r2, bar;
    add.u32 %r2, %r2, %r1;
    mov.u32 %r3, bar;
    mbarrier.init.shared.b64 [%r3+8], 3;
    mbarrier.arrive.shared.b64 _, [%r2];
    mbarrier.inval.shared.b64 [%r3];
    bar.arrive 2, 64;
    ret;
}
"""


def test_an_address_that_is_written_twice_is_unknown() -> None:
    init, arrive, barrier = TextRelations(lambda: parse(UNKNOWN, "k")).signals("k")
    assert (init.verb, init.symbol, init.number) == ("initialise", "bar", 3)
    assert (arrive.verb, arrive.symbol) == ("arrive", "")
    assert (barrier.verb, barrier.barrier, barrier.number) == ("arrive", 2, 64)
