"""Small PTX modules, written by hand, that between them show every construct of the reader's grammar."""

from __future__ import annotations

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"

KERNEL = (
    HEADER
    + r"""
// a comment with a quote " and a brace {
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0,
	.param .b64 vprintf_param_1
)
;
.const .align 4 .b8 C[16] = {0, 0, 128, 63, 0, 0, 0, 64};
.visible .global .align 4 .u32 g = 7;
.global .align 1 .b8 $str[6] = {104, 101, 108, 108, 111};
.global .align 8 .u64 table[2] = {_Z2f1i, generic($str)+4};
.extern .shared .align 16 .b8 dyn[];
.global .attribute(.managed) .s32 managed;
.weak .func (.reg .b32 out) f1(.reg .b32 in, .param .align 4 .b8 s[12]) .noreturn
{
	add.s32 out, in, 1;
	ret;
}
.visible .entry k(
	.param .u64 .ptr .global .align 16 k_param_0,
	.param .u32 k_param_1, /* two */
	.param .align 8 .b8 k_param_2[24]
)
.maxntid 128, 1, 1
.minnctapersm 2 .explicitcluster
.reqnctapercluster 2, 1, 1
.pragma "nounroll";
{
	.reg .pred 	%p<12>;
	.reg .b32 	%r<27>, %lone;
	.reg .b64 	%rd<39>;
	.reg .f32 %f<9>;
	.reg .v4 .f32 accel;
	.shared .align 4 .b8 tile[4][128];
	.loc	1 17 3
	mov.u32 	%r4, %tid.x;
	@%p1 bra 	$L__BB0_2;
	@!%p2 ld.shared.u32 %r1, [tile+4];
	ld.global.v4.f32 {%f1, _, %f3, %f4}, [%rd1+-16];
	mov.f32 %f5, 0f3F800000;
	setp.lt.s32 %p3|%p4, %r1, -4;
	.loc	1 20 3
	.loc	2 107 3, function_name $L__info_string0, inlined_at 1 20 3
	.loc	2 9 1, function_name $L__info_string1, inlined_at 2 107 3
	atom.global.add.u32 	%r14, [%rd10], 1;
$L__BB0_2:
	// begin inline asm
	{ .reg .pred p; setp.eq.s32 p, %r1, 0; @p bra L1; cp.async.wait_all; L1: }
	// end inline asm
	cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2, {%r3, %r4}], [%r5];
	{ // callseq 0, 0
	.param .b64 param0;
	st.param.b64 	[param0+0], %rd14;
	.param .b32 retval0;
	call.uni (retval0),
	vprintf,
	(
	param0,
	param0
	);
	prototype_0 : .callprototype (.param .b32 _) _ (.param .b32 _);
	call (retval0), %rd25, (param0), prototype_0;
	} // callseq 0
	ts: .branchtargets $L__BB0_2, M<3>;
	brx.idx %r1, ts;
M0: M1: M2:
	.pragma "nounroll";
	bar.sync 0;
	ret;
}
	.file	1 "/src/a.cu"
	.file	2 "/src/b \"quoted\".h", 1339013327, 64118
	.section	.debug_str
	{
$L__info_string0:
.b8 95,90,51,102 // _Z3f }
.b8 118,0
$L__info_string1:
.b8 103, 0x68
.b8 0
	}
	.section	.debug_macinfo	{	}
.alias f2, f1;
@@DWARF .4byte 0x6e69616d, 0x63613031
# 1 "preprocessed.ptx"
"""
)

#: Statements in spellings that compilers do not use, accepted by ptxas 13.0 (the last three are examples of the ISA).
UNUSUAL = (
    "mov .u32 %r1, 3;",
    "mov.u32%r1,3;",
    "@ ! %p1 mov.u32 %r1,3;",
    "mov.u32 %r1, (1+2)*3;",
    "mov.u32 %r1, a+4;",
    "mov.u32 %r1, a[1];",
    "ld.shared.u32 %r1, a[%r2];",
    "ld.shared.u32 %r1,[a+4*2];",
    "mov.u32 %r1, 0777;",
    "mov.u32 %r1, 0b101U;",
    "mov.f32 %f1, .5;",
    "mov.f32 %f1, 1.5e3;",
    "mov.u32 %r1, WARP_SZ;",
    "mov.u32 /*x*/ %r1 // foo\n , 3;",
    "mov.u32 %r1, ~3;",
    "mov.u32 %r1, 1?2:3;",
    "mov.u32 %r1, (.s64)3;",
    "mov.u32 %r1, %tid .x;",
    ".reg .b32 x<3>, y, z; mov.u32 x2, y;",
    ".reg.b32 x;",
    "bar.sync (0);",
    "bra L; L : ",
    "vmad.s32.s32.u32.sat %r0, %r1, %r2, -%r3;",
    "tex.3d.v4.s32.s32 {%r1,%r2,%r3,%r4}|%p1, [tex_a,{%f1,%f2,%f3,%f4}];",
    "ld.global.f32 %f1, [%rd1].unified;",
)

#: What ptxas 13.0 refuses as syntax: the statement, the word the error must be at, and a part of the message.
REFUSED = (
    (";", ";", "expected an instruction"),
    ("mov.f32 %f1, -0f3F800000;", "-0f", "cannot be applied"),
    ("ld.shared.u32 %r1,[%r2-4];", "-4", "in an address"),
    ("ld.shared.u32 %r1,[%r2+%r3];", "%r3", "a constant"),
    ("ld.shared.u32 %r1,[4+a];", "a]", "a constant"),
    ("mov.u32 %r1, 089;", "089", "malformed"),
    ("mov.u32 %r1, 99999999999999999999;", "9999", "64 bits"),
    ('.pragma "nounroll"', "ret", "';' after .pragma"),
    ("bar.sync 0", "ret", "',' or ';'"),
    ("mov.u32 %r1, 3,;", ";", "an operand"),
    (".reg .b32 a,;", ";", "the name of a variable"),
    ("{ } ;", ";", "expected an instruction"),
    ("bra (L);", "L)", "a constant"),
    ("mov.u32 %r1, 0xE2u;", "0xE2u", "neither a number nor a name"),
    (".loc 1 2;", ";", "a file index, line or column"),
    (".loc 1 2 -3", "-3", "a file index, line or column"),
    ("mov.u32 %r1, [%r2;", ";", "in an address"),
    ("mov.u32 {%r1, %r2, %r3;", ";", "in a list"),
    ("mov.u32 %r1, 1/0;", "/0", "division by zero"),
    (".noreturn", ".noreturn", "in a body"),
    ("@%p1 { ret; }", "{", "an instruction"),
    ("$foo %r1;", "$foo", "not an instruction"),
    ("ret; /* open", "/* open", "closing */"),
    ('.pragma "open;', '"open', "closing quote"),
    (".reg .b32 \u00e9;", "\u00e9", "unexpected character"),
)


def kernel(body: str) -> str:
    """A module with one entry that holds these statements and a `ret`."""
    return f"{HEADER}.visible .entry k(.param .u64 p)\n{{\n.shared .b32 a[8];\n{body}\nret;\n}}\n"
