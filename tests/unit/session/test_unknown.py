"""Findings of called hooks in kernels with instructions whose order they do not know."""

from __future__ import annotations

import numpy as np
import pytest

import consan

KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out) {{ .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<3>; .shared .align 16 .b8 s[64];
.shared .align 8 .b64 bar;
ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [s], [bar];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra W;
ld.shared.u32 %r1, [s]; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1{offset}], %r1; ret; }}
"""


@pytest.mark.parametrize("offset", ["", "+65536"])
def test_what_hooks_cannot_know_is_left_out(offset: str) -> None:
    """The response looks unwritten to them. A fault of the virtual machine is a fact, whatever they know."""
    kernel = consan.Kernel(KERNEL.format(offset=offset))
    report = consan.launch(kernel, 4, 32, [np.zeros(32, np.uint32)], device="cpu", engine="inline")
    assert [finding.kind for finding in report.findings] == ["out-of-bounds"] * bool(offset)
    opcode = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"
    assert f"1 finding in k left out: called hooks do not know how {opcode} orders accesses" in report.incomplete
    assert report.verdict == ("violations" if offset else "incomplete")
