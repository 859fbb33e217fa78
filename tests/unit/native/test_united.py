"""Several modules as one: what a device linker would make of them, and whether findings point at the files of all parts."""

from __future__ import annotations

import numpy as np
import pytest

import consan
from consan._errors import NotSupported
from consan.instrument.functions.analyse import plan_functions
from consan.instrument.ptx import parse
from consan.libcuda.texts.united import unite
from consan.toolchain.assemble import assemble

HEAD = ".version {version}\n.target {target}\n.address_size 64\n"


def part(text: str, version: str = "8.0", target: str = "sm_90") -> str:
    return HEAD.format(version=version, target=target) + text


# A kernel whose function and variables are elsewhere; both modules keep a variable, a function and a label of one name to themselves.
CALLER = part(
    """
.extern .func (.param .b32 result) shifted(.param .b32 index);
.extern .global .align 4 .b8 weight[16];
.extern .shared .align 4 .b8 tile[];
.global .u32 own = 3;
.func (.param .b32 result) helper() { .reg .b32 %r<3>; .loc 1 20 1
    ld.global.u32 %r1, [own]; st.param.b32 [result], %r1; ret; }
.visible .entry kernel(.param .u64 out) {
    .reg .b32 %r<12>; .reg .b64 %rd<6>; .param .b32 index; .param .b32 found;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.u32 %r4, %r3, %r2;
    .loc 1 7 5
    st.shared.u32 [%r4], %r1;
    BARRIER
    st.param.b32 [index], %r1;
    call (found), shifted, (index);
    ld.param.b32 %r5, [found];
    call (found), helper, ();
    ld.param.b32 %r6, [found];
    ld.global.u32 %r7, [weight+4];
    mad.lo.u32 %r8, %r5, %r6, %r7;
    cvta.to.global.u64 %rd2, %rd1; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r8;
    ret;
}
.file 1 "caller.cu"
.section .debug_str { $L__info_string0: .b8 97,0 }
""",
)
CALLEE = part(
    """
.visible .global .align 4 .u32 weight[4] = {1, 20, 3, 4};
.extern .shared .align 16 .b8 tile[];
.global .u32 own = 1000;
.func (.param .b32 result) helper() { .reg .b32 %r<3>;
    ld.global.u32 %r1, [own]; st.param.b32 [result], %r1; ret; }
.visible .func (.param .b32 result) shifted(.param .b32 index) {
    .reg .b32 %r<9>; .param .b32 found;
    ld.param.b32 %r1, [index];
    add.u32 %r2, %r1, 32; and.b32 %r2, %r2, 63; shl.b32 %r2, %r2, 2;
    mov.u32 %r3, tile; add.u32 %r4, %r3, %r2;
    .loc 1 9 3
    .loc 1 9 3, function_name $L__info_string0, inlined_at 1 9 3
    ld.shared.u32 %r5, [%r4];
    call (found), helper, ();
    ld.param.b32 %r6, [found];
    add.u32 %r7, %r5, %r6;
    st.param.b32 [result], %r7;
    ret;
}
.file 1 "callee.cu"
.section .debug_str { $L__info_string0: .b8 98,0 }
""",
    version="8.3",
    target="sm_90a",
)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("barrier", ["bar.sync 0;", ""], ids=["clean", "racy"])
def test_parts_that_need_each_other(barrier: str, order: int) -> None:
    text, missing = unite([CALLER.replace("BARRIER", barrier), CALLEE][::order])
    assert not missing
    assert text.startswith(HEAD.format(version="8.3", target="sm_90a"))
    assert ".align 16 .b8 tile[];" in text
    assert assemble(text, "sm_90a").cubin
    out = np.zeros(64, np.uint32)
    report = consan.launch(consan.Kernel(text, entry="kernel"), 1, 64, [out], smem=256, device="cpu")
    if barrier:
        assert report.verdict == "clean"
        assert out.tolist() == [((t + 32) % 64 + 1000) * 3 + 20 for t in range(64)], "each part has its own `own` and `helper`"
    else:
        (finding,) = report.findings
        assert {(access.file, access.line) for access in finding.accesses[:2]} == {("caller.cu", 7), ("callee.cu", 9)}


def test_of_weak_definitions_the_visible_one_stays_and_of_common_ones_the_largest() -> None:
    weak = part(".weak .func f() { ret; }\n.common .global .align 4 .b8 room[8];\n.weak .entry k() { call f, (); ret; }")
    strong = part(".visible .func f() { .reg .b32 %r<2>; mov.u32 %r1, 7; ret; }\n.common .global .align 4 .b8 room[64];")
    text, missing = unite([weak, strong, weak + "\n// the same again"])
    assert (missing, text.count("f() {"), text.count("mov.u32"), text.count(".entry k()"), text.count("room[")) == ([], 1, 1, 1, 1)
    assert "room[64]" in text


def test_what_is_missing_and_what_cannot_be_one() -> None:
    declared = ".extern .func g();\n.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
    wanting = part(declared + ".visible .entry k() { call g, (); ret; }")
    assert unite([wanting])[1] == ["g"], "the driver has vprintf"
    with pytest.raises(NotSupported, match="several of its modules define f"):
        unite([part(".visible .func f() { ret; }"), part(".visible .func f() { trap; }")])
    with pytest.raises(NotSupported, match="declares a and b at once"):
        unite([part(".global .u32 a, b;")])


def test_a_name_is_not_changed_where_it_only_looks_alike() -> None:
    first = part('.global .u32 x;\n.visible .global .u32 xx = 5; // x\n.pragma "x";')
    text, _ = unite([first, part(".global .u32 x;\n.visible .global .u64 p = x;")])
    assert ".visible .global .u32 xx = 5;" in text
    assert '"x"' in text
    assert ".visible .global .u64 p = x__part2;" in text
    assert text.index("x__part2;") < text.index("p = x__part2"), "what an initial value names comes first"


@pytest.mark.parametrize("order", [1, -1])
def test_another_name_of_a_function_is_defined(order: int) -> None:
    """As constructors of C++ are called in one file, and are one function by two names in the other."""
    caller = part(".extern .func other(.param .b64 p);\n.visible .entry k(.param .u64 p) { .param .b64 a; call other, (a); ret; }")
    callee = part(".visible .func other(.param .b64 p);\n.visible .func f(.param .b64 p) { ret; }\n.alias other, f;")
    text, missing = unite([caller, callee][::order])
    assert missing == []
    assert assemble(text, "sm_90").cubin
    assert plan_functions(parse(text))["k"].stats.calls == {"f"}
