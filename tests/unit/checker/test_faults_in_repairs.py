"""What a text is not repaired by, and what the tests would see of a fault in that."""

from __future__ import annotations

import pytest
from planted import plant

from consan.checker.repairs import text_repairs
from consan.checker.repairs.text_places import TextPlaces
from consan.checker.repairs.text_repairs import TextRepairs
from consan.instrument.ptx import parse

TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra $a;
    bar.sync BARRIER;
$a:
    shfl.sync.down.b32 %r2, %r1, 16, 31, -1;
    ret;
}
"""


def repairs(barrier: str, situation: str) -> list[str]:
    """The repairs of a barrier in a branch."""
    text = TEXT.replace("BARRIER", barrier)
    lines = frozenset(number for number, line in enumerate(text.splitlines(), 1) if "bar.sync" in line or "shfl" in line)
    found = TextRepairs(TextPlaces(parse(text)), "barrier-misuse", situation, lines, (64, 1, 1))
    return [f"{step.action} {step.instruction}" for repair in found for step in repair.steps]


def _unaligned(of: str) -> bool:
    return any("barrier.sync" in each for each in repairs(of, "divergent"))


def test_syncthreads_has_no_form_that_lanes_need_not_reach_together() -> None:
    assert (_unaligned("0"), _unaligned("1, 64")) == (False, True)


def test_a_lane_that_has_left_is_not_kept() -> None:
    """The condition may keep it from bytes that are not there."""
    assert repairs("0", "lane-gone") == []
    assert "leave-out condition" in repairs("0", "divergent")


@pytest.mark.parametrize(
    ("old", "new", "asked"),
    [
        (' if [operand.text for operand in each.operands] != ["0"]', "", lambda: _unaligned("0")),
        ('() if self.situation == "lane-gone" else (*first, *forms)', "forms", lambda: bool(repairs("0", "lane-gone"))),
    ],
    ids=["syncthreads", "a lane that has left"],
)
def test_a_fault(old: str, new: str, asked: object, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, text_repairs, old, new)
    assert asked()
