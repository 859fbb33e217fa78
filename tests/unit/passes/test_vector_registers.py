"""Register variables that are vectors (ISA "Vectors") become scalars, and the kernel computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import consan
from consan.instrument.ptx import parse
from consan.instrument.rewriting.vector_registers import with_scalars

KERNEL = """.version 8.5
.target sm_90
.address_size 64
.shared .align 16 .b8 buffer[512];
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, buffer;
    shl.b32 %r3, %r1, 4;
    add.u32 %r2, %r2, %r3;
    { .reg .v4 .b32 abcd;  .reg .v2 .b32 %pair<2>;
      mov.b32 abcd.x, %r1; mov.b32 abcd.g, 5; mov.b32 abcd.z, 6; mov.b32 %pair1.r, 7; mov.b32 abcd.a, %pair1.x;
      st.shared.v4.b32 [%r2], abcd; }
    BARRIER
    xor.b32 %r2, %r2, 16;
    { .reg .v4 .b32 abcd;
      ld.shared.v4.b32 abcd, [%r2];
      mad.lo.u32 %r3, abcd.x, 1000, abcd.w; }
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    st.global.b32 [%rd1], %r3;
    ret;
}
"""


@pytest.mark.parametrize(("barrier", "verdict"), [("bar.sync 0;", "clean"), ("", "violations")])
def test_the_kernel_runs_and_is_checked(barrier: str, verdict: str) -> None:
    out = np.zeros(32, np.uint32)
    report = consan.launch(consan.Kernel(KERNEL.replace("BARRIER", barrier)), grid=1, block=32, args=[out], device="cpu")
    assert report.verdict == verdict
    if barrier:
        np.testing.assert_array_equal(out, (np.arange(32) ^ 1) * 1000 + 7)


def test_lines_stay_and_other_modules_are_not_touched() -> None:
    text = KERNEL.replace("BARRIER", "")
    made = with_scalars(parse(text))
    assert len(made.text.splitlines()) == len(text.splitlines())
    assert ".reg .b32 abcd$x, abcd$y, abcd$z, abcd$w;" in made.text
    assert ".reg .b32 %pair0$x, %pair0$y, %pair1$x, %pair1$y;" in made.text
    assert "st.shared.v4.b32 [%r2], {abcd$x, abcd$y, abcd$z, abcd$w};" in made.text
    other = parse(text.replace("{ .reg .v4 .b32 abcd;\n", "{ .reg .v2 .b32 abcd;\n"))  # two lengths: left as it is
    assert with_scalars(other) is other
