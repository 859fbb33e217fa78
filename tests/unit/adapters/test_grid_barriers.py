"""The barrier of the grid of CUDA's device runtime, as the stand-in driver's PTX has it (consan/adapters/driven/grid_barriers.py)."""

from __future__ import annotations

import numpy as np
import pytest

import consan
from consan.adapters.driven.grid_barriers import with_grid_barriers

DECLARED = """
.version 8.0
.target sm_90
.address_size 64
.extern .func  (.param .b64 func_retval0) cudaCGGetIntrinsicHandle
(
    .param .b32 cudaCGGetIntrinsicHandle_param_0
)
;
.extern .func  (.param .b32 func_retval0) cudaCGSynchronize
(
    .param .b64 cudaCGSynchronize_param_0,
    .param .b32 cudaCGSynchronize_param_1
)
;
"""
CALL = """
{ .param .b64 of; .param .b32 flags; .param .b32 error; st.param.b64 [of], %grid; st.param.b32 [flags], 0;
call.uni (error), cudaCGSynchronize, (of, flags); }
"""
# Three times: each thread adds 1 to its word, and then the word of the last thread, counted from behind, to its sum.
KERNEL = """
.visible .entry mirror(.param .u64 given, .param .u64 found)
{
    .reg .pred %more; .reg .b32 %i, %n, %t, %c, %v, %s, %round; .reg .b64 %grid, %p, %q, %own, %other, %sum;
    ld.param.u64 %p, [given]; ld.param.u64 %q, [found];
    { .param .b32 scope; .param .b64 handle; st.param.b32 [scope], 1; call.uni (handle), cudaCGGetIntrinsicHandle, (scope);
    ld.param.b64 %grid, [handle]; }
    mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.y; mov.u32 %v, %tid.y; mad.lo.u32 %c, %c, %n, %v;
    mov.u32 %t, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %c, %t, %i; mul.lo.u32 %n, %n, %t; mov.u32 %c, %nctaid.x; mul.lo.u32 %n, %n, %c;
    mul.wide.u32 %own, %i, 4; add.u64 %sum, %q, %own; add.u64 %own, %p, %own;
    sub.u32 %n, %n, %i; sub.u32 %n, %n, 1; mul.wide.u32 %other, %n, 4; add.u64 %other, %p, %other; mov.u32 %round, 0;
again:
    ld.global.u32 %v, [%own]; add.u32 %v, %v, 1; st.global.u32 [%own], %v;
    FIRST
    ld.global.u32 %v, [%other]; ld.global.u32 %s, [%sum]; add.u32 %s, %s, %v; st.global.u32 [%sum], %s;
    SECOND
    add.u32 %round, %round, 1; setp.lt.u32 %more, %round, 3; @%more bra again;
    ret;
}
"""


@pytest.mark.parametrize(("first", "second"), [(True, True), (False, True), (True, False)])
def test_a_barrier_of_the_grid_orders_its_ctas(first: bool, second: bool) -> None:
    text = KERNEL.replace("FIRST", CALL if first else "").replace("SECOND", CALL if second else "")
    kernel = consan.Kernel(with_grid_barriers(DECLARED + text), "mirror")
    given, found = np.arange(96, dtype=np.uint32), np.zeros(96, np.uint32)
    report = consan.launch(kernel, 3, (8, 4), [given, found], device="cpu")
    if first and second:
        assert report.verdict == "clean"
        np.testing.assert_array_equal(found, 3 * np.arange(96)[::-1] + 6)
    else:
        assert "global-race" in {each.kind for each in report.findings}


def test_text_without_grids_stays_as_it_is() -> None:
    text = ".extern .func vprintf;\n.visible .entry k() { ret; }"
    assert with_grid_barriers(text) == text
