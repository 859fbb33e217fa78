"""Which stores the value of a load goes into: only into stores to global memory, or elsewhere too."""

from __future__ import annotations

import pytest

from consan.instrument.ptx import parse
from consan.instrument.record.analyses.stored_values import stores_of_values

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a) {{
    .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>;
    ld.param.u64 %d1, [a];
    ld.global.u32 %r1, [%d1];
    {body}
    st.global.u32 [%d1+8], %r3;
    ret;
}}
"""
CASES = {
    "add.u32 %r3, %r1, 1;": 1,
    "mov.u32 %r3, 0; st.global.u32 [%d1], %r1;": 1,
    "mov.u32 %r3, %r1; @%p1 st.global.u32 [%d1], %r1;": 3,
    "mov.u32 %r3, 0;": 0,
    "cvt.u64.u32 %d1, %r1; mov.u32 %r3, %r1;": 0,
    "setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, 0; @%p1 bra A; add.u32 %r3, %r3, 1; A:": 1,
    "setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, 0; @%p1 bra A; add.u32 %r3, %r3, 1; bra B; A: sub.u32 %r3, %r1, 2; B:": 1,
    "setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, 0; @%p1 bra A; st.global.u32 [%d1], %r3; A:": 0,
    "B: setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, 0; @%p1 bra B;": 0,
    "setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, 0; @%p1 st.global.u32 [%d1], %r3;": 0,
    "setp.eq.u32 %p1, %r1, 0; selp.u32 %r3, 1, 2, %p1;": 1,
    "shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;": 0,
    "st.shared.u32 [%r2], %r1; mov.u32 %r3, %r1;": 0,
    "st.volatile.global.u32 [%d1], %r1; mov.u32 %r3, %r1;": 0,
    "ld.global.u32 %r3, [%d1]; add.u32 %r3, %r3, %r1;": 1,
}


@pytest.mark.parametrize("body", CASES)
def test_where_the_value_of_a_load_goes(body: str) -> None:
    (function,) = parse(KERNEL.format(body=body)).functions
    load = next(each for each in function.instructions() if each.parts[:2] == ("ld", "global"))
    assert stores_of_values(function)[load.start] == CASES[body]
