"""A wait for a wrong parity, of a phase whose arrivals come only behind a barrier after the wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from consan.instrument.between import TextRelations
from consan.instrument.ptx import parse
from consan.reports.model import CULPRIT, Access, Finding
from consan.reports.waiting.unended import with_late_arrivals

HEAD = ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .pred %p<9>;\n.reg .b32 %r<9>;\n"
HEAD += ".shared .align 8 .b64 full;\n.shared .align 8 .b64 empty;\n"
WAIT = "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [full], 1; }"
BARRIER, ARRIVE = "bar.sync 0;", "mbarrier.arrive.shared.b64 _, [full];"
RACY = ("@%p1 bra NEXT;", WAIT, "NEXT:", BARRIER, ARRIVE)


def told(*lines: str, lacked: int = 1, name: str = "full", op: str = "mbarrier.try_wait.parity.shared::cta.b64") -> Finding:
    text = HEAD + "\n".join(lines) + "\nret;\n}\n"
    wait = Access(CULPRIT, op, ptx_line=text.splitlines().index(WAIT) + 1)
    finding = Finding("missing-wait", "k", message="early", fix="wait", accesses=(wait,), barrier={"name": name})
    return with_late_arrivals(finding, TextRelations(lambda: parse(text, "k.ptx")), lacked)


def test_the_arrival_behind_the_barrier_has_to_be_moved_too() -> None:
    finding = told(*RACY)
    late = "the arrival at PTX line 14 comes too late for this wait: after the barrier at PTX line 13"
    assert finding.message == f"early; that phase still lacked 1 arrival, and {late}"
    assert [access.ptx for access in finding.accesses] == ["", ARRIVE]
    assert finding.fix.endswith("if the arrival at PTX line 14 belongs to that phase, move it before the barrier at PTX line 13")


@pytest.mark.parametrize(
    ("lines", "changes"),
    [
        (RACY, {"lacked": 0}),
        (RACY, {"name": "empty"}),
        (RACY, {"name": ""}),
        (RACY, {"op": "mbarrier.arrive.shared.b64"}),
        ((ARRIVE, WAIT, BARRIER), {}),  # before the wait
        (("@%p1 bra NEXT;", WAIT, "bra END;", "NEXT:", ARRIVE, "END:", BARRIER), {}),  # beside it
        ((WAIT, "@%p1 bra NEXT;", BARRIER, "NEXT:", ARRIVE), {}),  # a path avoids the barrier
        ((WAIT, "bar.sync 1, 64;", ARRIVE), {}),  # not a barrier of all threads
        (("LOOP:", BARRIER, WAIT, "@%p1 bra LOOP;", ARRIVE), {}),  # the barrier comes before the wait too
    ],
)
def test_nothing_is_said_where_the_arrival_can_come_first(lines: tuple[str, ...], changes: dict[str, object]) -> None:
    assert told(*lines, **changes).fix == "wait"  # type: ignore[arg-type]


def test_other_kinds_are_left_alone() -> None:
    finding = replace(told(*RACY, lacked=0), kind="data-race")
    assert with_late_arrivals(finding, None, 1) is finding
