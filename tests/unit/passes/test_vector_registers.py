"""Register variables that are vectors (ISA "Vectors") become scalars, and the kernel computes the same."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from planted import plant

import consan
from consan.backends.virtual import VirtualBackend
from consan.instrument.ptx import parse
from consan.instrument.rewriting import vector_registers
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


def test_lines_stay_and_other_modules_are_not_touched() -> None:
    text = KERNEL.replace("BARRIER", "")
    made = with_scalars(parse(text))
    assert len(made.text.splitlines()) == len(text.splitlines())
    assert ".reg .b32 abcd$x, abcd$y, abcd$z, abcd$w;" in made.text
    assert ".reg .b32 %pair0$x, %pair0$y, %pair1$x, %pair1$y;" in made.text
    assert "st.shared.v4.b32 [%r2], {abcd$x, abcd$y, abcd$z, abcd$w};" in made.text
    other = parse(text.replace("{ .reg .v4 .b32 abcd;\n", "{ .reg .v2 .b32 abcd;\n"))  # two lengths: left as it is
    assert with_scalars(other) is other


MOVES = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {{
    .reg .b32 %r<8>;  .reg .v4 .b32 acc;  .reg .b64 %rd<4>;  .reg .pred %p;
    mov.b32 %r1, 11; mov.b32 %r2, 12; mov.b32 %r3, 13; mov.b32 %r4, 14;
    setp.eq.u32 %p, %r1, 0;
    {}
    ld.param.u64 %rd1, [out];
    st.global.v4.b32 [%rd1], {{%r1, %r2, %r3, %r4}};
    ret;
}}
"""
FORMS = {
    "mov.v4.b32 {%r1, %r2, %r3, %r4}, {1, 2, %r1, 4};": (1, 2, 11, 4),
    "mov.v4.b32 {%r1, %r2, %r3, %r4}, {%r4, %r3, %r2, %r1};": (14, 13, 12, 11),
    "mov.v2.b32 {%r2, %r1}, {%r1, %r2};": (12, 11, 13, 14),
    "mov.v4.b32 {_, %r1, _, %r2}, {%r2, %r3, %r4, %r1};": (13, 11, 13, 14),
    "mov.v4.b32 {%r1, %r2, %r3, %r4}, 7;": (7, 0, 0, 0),
    "mov.v4.b32 acc, 7; mov.b64 {acc.z, acc.w}, 0x200000001; mov.v4.b32 {%r1, %r2, %r3, %r4}, acc;": (7, 0, 1, 2),
    "mov.v4.u32 {%r1, %r2, %r3, %r4}, %ctaid;": (0, 0, 0, 0),
    "mov.v4.u32 {%r1, %r2, %r3, %r4}, %nctaid;": (1, 1, 1, 0),
    "@%p mov.v4.b32 {%r1, %r2, %r3, %r4}, {%r4, %r3, %r2, %r1};": (11, 12, 13, 14),
}


@pytest.mark.parametrize("form", FORMS)
def test_moves_of_vectors(form: str) -> None:
    """What ptxas makes of them: a number is the first element."""
    out = np.zeros(4, np.uint32)
    report = consan.launch(consan.Kernel(MOVES.format(form)), grid=1, block=1, args=[out], device="cpu")
    assert (report.verdict, tuple(out.tolist())) == ("clean", FORMS[form])
    assert "mov.v" not in with_scalars(parse(MOVES.format(form))).text


def test_old_values_are_kept_where_a_target_is_also_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault: one move after the other."""
    form = "mov.v2.b32 {%r2, %r1}, {%r1, %r2};"
    plant(monkeypatch, vector_registers, "if not overlap:", "if True:", "_moves")
    out = np.zeros(4, np.uint32)
    consan.launch(consan.Kernel(MOVES.format(form)), grid=1, block=1, args=[out], device="cpu")
    assert tuple(out.tolist()) != FORMS[form]


PROFILED = """.version 8.5
.target sm_90
.address_size 64
.shared .align 16 .b8 buffer[512];
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<5>;
    .reg .b64 %rd<3>;
    .reg .pred %p1;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, buffer;
    mad.lo.u32 %r2, %r1, 8, %r2;
    setp.lt.u32 %p1, %r1, 32;
    @%p1 st.shared.v2.u32 [%r2], {%laneid, %clock};
    BARRIER
    xor.b32 %r2, %r2, 8;
    ld.shared.v2.u32 {%r3, %r4}, [%r2];
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    st.global.b32 [%rd1], %r3;
    ret;
}
"""


CASES = [(KERNEL, (np.arange(32) ^ 1) * 1000 + 7), (PROFILED, np.arange(32) ^ 1)]


@pytest.mark.parametrize(("barrier", "verdict"), [("bar.sync 0;", "clean"), ("", "violations")])
@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=["vector registers", "a special register in a vector"])
def test_the_kernel_runs_and_is_checked(kernel: str, expected: npt.NDArray[np.int64], barrier: str, verdict: str) -> None:
    out = np.zeros(32, np.uint32)
    report = consan.launch(consan.Kernel(kernel.replace("BARRIER", barrier)), grid=1, block=32, args=[out], device="cpu")
    assert (report.verdict, report.kernels[0].engine) == (verdict, "record")
    if barrier:
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=["vector registers", "a special register in a vector"])
def test_the_kernel_runs_where_it_is_not_checked(kernel: str, expected: npt.NDArray[np.int64]) -> None:
    """As launches that a filter leaves out, or that are known by then."""
    out = np.zeros(32, np.uint32)
    backend = VirtualBackend()
    module = backend.load(kernel.replace("BARRIER", "bar.sync 0;"))
    place = backend.alloc(out.nbytes)
    backend.launch(module, "k", (1, 1, 1), (32, 1, 1), [place.to_bytes(8, "little")])
    np.testing.assert_array_equal(np.frombuffer(backend.read(place, out.nbytes), np.uint32), expected)


def test_the_special_register_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault: neither the recorder nor the virtual machine takes such a vector."""
    plant(monkeypatch, vector_registers, "return _without_special(", "return (", "with_scalars")
    with pytest.raises(consan.ConsanError, match="unknown register %clock"):
        consan.launch(
            consan.Kernel(PROFILED.replace("BARRIER", "bar.sync 0; // planted")),
            grid=1,
            block=33,
            args=[np.zeros(33, np.uint32)],
            device="cpu",
        )
