"""Two writers of the same bytes: a warning where they store the same, else an error; also by `stmatrix`, whose rows lie across lanes."""

from __future__ import annotations

import pytest
from pipeline_kernels import HEAD

from consan.session.planning.options import SessionOptions
from consan.session.session import Session

# Warp 0 stores matrices, and warp 1 reads each row with one lane; then both store the rows again, with no barrier between. The lane
# of warp 1 that is the parameter changes one bit.
_AGAIN = """
.visible .entry again(.param .u32 other)
{{
  .reg .pred %p<4>;
  .reg .b32 %r<32>;
  .shared .align 16 .b8 s[512];
  ld.param.u32 %r9, [other];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 31;
  setp.lt.u32 %p1, %r1, 32;
  setp.lt.u32 %p2, %r2, {rows};
  mad.lo.u32 %r10, %r2, 0x00020002, 0x00010000;
  add.u32 %r11, %r10, 0x00400040;
  add.u32 %r12, %r11, 0x00400040;
  add.u32 %r13, %r12, 0x00400040;
  mov.u32 %r3, s;
  mad.lo.u32 %r3, %r2, 16, %r3;
  @%p1 stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r3], {{{registers}}};
  bar.sync 0;
  @!%p2 mov.u32 %r3, s;
  @!%p1 ld.shared.v4.b32 {{%r20, %r21, %r22, %r23}}, [%r3];
  bar.sync 0;
  setp.eq.u32 %p3, %r2, %r9;
  @%p3 xor.b32 %r22, %r22, 0x10000;
  @%p1 stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r3], {{{registers}}};
  @%p1 bra END;
  @%p2 st.shared.v4.b32 [%r3], {{%r20, %r21, %r22, %r23}};
END:
  ret;
}}
"""


@pytest.mark.parametrize("engine", ["inline", "record"])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize(("other", "severity"), [(99, "warning"), (5, "error")])
def test_stmatrix(count: int, trans: str, other: int, severity: str, engine: str) -> None:
    registers = ", ".join(f"%r{10 + number}" for number in range(count))
    session = Session(SessionOptions(device="cpu", engine=engine))
    prepared = session.prepare(HEAD + _AGAIN.format(count=count, rows=8 * count, trans=trans, registers=registers))
    session.launch(prepared, "again", (1, 1, 1), (64, 1, 1), [other.to_bytes(4, "little")])
    report = session.report()
    findings = report.findings
    assert [kernel.engine for kernel in report.kernels] == [engine]
    assert {(finding.kind, finding.hazard) for finding in findings} == {("data-race", "WAW")}
    assert max((finding.severity for finding in findings), key=("warning", "error").index) == severity


# Two warps store the same rows, in a kernel that deals out its registers.
_DEALT = """
.visible .entry again(.param .u32 other)
{{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .shared .align 16 .b8 s[512];
  setmaxnreg.inc.sync.aligned.u32 128;
  ld.param.u32 %r7, [other];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 31;
  mov.u32 %r3, s;
  mad.lo.u32 %r3, %r2, 16, %r3;
  mul.lo.u32 %r4, %r2, 77;
  xor.b32 %r5, %r4, 0x10001;
  setp.eq.u32 %p, %r1, %r7;
  @%p xor.b32 %r5, %r5, 0x10000;
  stmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 [%r3], {{%r4, %r5}};
  ret;
}}
"""


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize(("other", "severity"), [(99, "note"), (40, "error")])
def test_stmatrix_where_registers_are_dealt_out(other: int, trans: str, severity: str) -> None:
    """One thread, or none, changes one bit of a row that both warps have computed."""
    session = Session(SessionOptions(device="cpu", engine="record"))
    session.launch(session.prepare(HEAD + _DEALT.format(trans=trans)), "again", (1, 1, 1), (64, 1, 1), [other.to_bytes(4, "little")])
    assert [(finding.kind, finding.hazard, finding.severity) for finding in session.report().findings] == [("data-race", "WAW", severity)]
