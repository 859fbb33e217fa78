"""Atomics of many CTAs at one place: proven where nothing reads what they find."""

from __future__ import annotations

import pytest

from consan.instrument.ptx import parse
from consan.ranges import LaunchExtents, NotProven, Slice, prove

SHAPE = LaunchExtents((4096, 1, 1), (128, 1, 1))  # more CTAs than a walk takes one by one
ROWS = 1024
# A thread's number modulo `rows`, as Python has it for numbers of either sign: the condition of the correction differs within a CTA.
MODULO = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 to, .param .u64 from, .param .u32 rows) {
.reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<5>;
ld.param.u64 %d1, [to]; ld.param.u64 %d2, [from]; ld.param.u32 %r1, [rows];
mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.s32 %r5, %r3, %r4, %r2;
rem.s32 %r6, %r5, %r1; setp.ne.s32 %p1, %r6, 0; xor.b32 %r7, %r6, %r1; CONDITION
selp.b32 %r8, %r1, 0, %p2; add.s32 %r9, %r6, %r8; mul.wide.s32 %d3, %r9, 4;
add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
ADDS
ret; }"""
CONDITIONS = {
    "and": "setp.lt.s32 %p3, %r7, 0; and.pred %p2, %p1, %p3;",
    "the same, the other way round": "setp.lt.s32 %p3, %r7, 0; and.pred %p2, %p3, %p1;",
    "a comparison and a predicate": "setp.lt.s32 %p3, %r7, 0; setp.ne.and.s32 %p2, %r6, 0, %p3;",
}
ADD = "atom.global.add.u32 %r10, [%d4], 1;"
PARAMETERS = tuple(each.to_bytes(size, "little") for each, size in ((1 << 32, 8), (1 << 33, 8), (ROWS, 4)))


def _count(adds: str, condition: str = "and", ranks: int = 1) -> int:
    (function,) = parse(MODULO.replace("CONDITION", CONDITIONS[condition]).replace("ADDS", adds)).functions
    return prove(Slice(function, ranks=ranks), PARAMETERS, SHAPE).count


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_zero_decides_what_an_unknown_predicate_does_not(condition: str) -> None:
    assert _count(ADD, condition) == 4096 * 128


@pytest.mark.parametrize(
    "adds",
    [
        "red.global.add.u32 [%d4], 1;",
        "red.relaxed.sys.global.add.u32 [%d4], 1;",
        "atom.global.add.u32 %r10, [%d4], 1; atom.global.exch.b32 %r10, [%d4], 2;",
        "atom.release.gpu.global.add.u32 _, [%d4], 1;",
        "red.global.v2.f32.add [%d1], {%r10, %r11}; red.global.add.f32 [%d1+4], %r10;",
        "st.relaxed.gpu.global.u32 [%d4], %r5; st.volatile.global.u32 [%d4], %r5;",
    ],
)
def test_strong_writes_that_give_nothing(adds: str) -> None:
    assert _count(adds)


@pytest.mark.parametrize(
    "adds",
    [
        f"{ADD} add.u32 %r11, %r10, 1;",
        f"{ADD} setp.eq.u32 %p4, %r10, 0; @%p4 red.global.add.u32 [%d5], 1;",
        f"{ADD} ld.relaxed.gpu.global.u32 %r11, [%d4];",
        f"{ADD} ld.global.u32 %r11, [%d1];",
        f"{ADD} st.global.u32 [%d4], %r5;",
        "atom.cta.global.add.u32 %r10, [%d4], 1;",
        "red.relaxed.cluster.global.add.u32 [%d4], 1;",
        f"{ADD} red.global.add.u64 [%d1], %d2;",
        f"{ADD} red.global.add.noftz.f16x2 [%d4], %r10;",
    ],
)
def test_others(adds: str) -> None:
    with pytest.raises(NotProven):
        _count(adds)


def test_the_scope_of_a_device_does_not_reach_other_ranks() -> None:
    assert _count("red.relaxed.sys.global.add.u32 [%d4], 1;", ranks=2)
    with pytest.raises(NotProven):
        _count(ADD, ranks=2)
