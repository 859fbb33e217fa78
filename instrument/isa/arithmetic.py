"""Rows of the instructions that compute in registers: PTX ISA 9.7.1 to 9.7.8, `mov`, `prmt`, conversions and video instructions.

They access no memory, so their status is neutral. The carry flag of the extended-precision instructions is an implicit operand that the
table does not list. Operand selectors of the video instructions (`a.b0`) belong to the operand, not to the opcode.
"""

from __future__ import annotations

from consan.instrument.isa.build import rows
from consan.instrument.isa.model import Row

__all__ = ["ROWS"]

_INTEGERS = {"type": "u16 u32 u64 s16 s32 s64"}
_BITS = {"type": "b32 b64"}
_WORDS = {"type": "u32 s32 u64 s64"}
_FLOATS = {"type": "f32 f64"}
_HALVES = {"h": "f16 f16x2", "bh": "bf16 bf16x2"}
_SELECT = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"

INTEGER: list[Row] = [
    *rows(
        "Integer Arithmetic Instructions: add, sub",
        "arithmetic",
        """
        add.type dst, src, src
        add{.sat}.s32 dst, src, src
        sub.type dst, src, src
        sub{.sat}.s32 dst, src, src
        """,
        classes={"type": "u16 u32 u64 s16 s32 s64 u16x2 s16x2"},
    ),
    *rows(
        "Integer Arithmetic Instructions: mul, mad",
        "arithmetic",
        """
        mul.mode.type dst, src, src
        mad.mode.type dst, src, src, src
        mad.hi.sat.s32 dst, src, src, src
        """,
        classes={"mode": "hi lo wide", **_INTEGERS},
    ),
    *rows(
        "Integer Arithmetic Instructions: mul24, mad24",
        "arithmetic",
        """
        mul24.mode.type dst, src, src
        mad24.mode.type dst, src, src, src
        mad24.hi.sat.s32 dst, src, src, src
        """,
        classes={"mode": "hi lo", "type": "u32 s32"},
    ),
    *rows(
        "Integer Arithmetic Instructions: sad, div, rem",
        "arithmetic",
        """
        sad.type dst, src, src, src
        div.type dst, src, src
        rem.type dst, src, src
        """,
        classes=_INTEGERS,
    ),
    *rows(
        "Integer Arithmetic Instructions: abs, neg",
        "arithmetic",
        """
        abs.type dst, src
        neg.type dst, src
        """,
        classes={"type": "s16 s32 s64"},
    ),
    *rows(
        "Integer Arithmetic Instructions: min, max",
        "arithmetic",
        """
        min.atype dst, src, src
        min{.relu}.btype dst, src, src
        max.atype dst, src, src
        max{.relu}.btype dst, src, src
        """,
        classes={"atype": "u16 u32 u64 u16x2 s16 s64", "btype": "s16x2 s32"},
    ),
    *rows(
        "Integer Arithmetic Instructions: popc, clz, brev",
        "arithmetic",
        """
        popc.type dst, src
        clz.type dst, src
        brev.type dst, src
        """,
        classes=_BITS,
    ),
    *rows("Integer Arithmetic Instructions: bfind", "arithmetic", "bfind{.shiftamt}.type dst, src", classes=_WORDS),
    *rows("Integer Arithmetic Instructions: fns", "arithmetic", "fns.b32 dst, src, src, src"),
    *rows("Integer Arithmetic Instructions: bfe", "arithmetic", "bfe.type dst, src, src, src", classes=_WORDS),
    *rows("Integer Arithmetic Instructions: bfi", "arithmetic", "bfi.type dst, src, src, src, src", classes=_BITS),
    *rows(
        "Integer Arithmetic Instructions: szext, bmsk",
        "arithmetic",
        """
        szext.mode.type dst, src, src
        bmsk.mode.b32 dst, src, src
        """,
        classes={"mode": "clamp wrap", "type": "u32 s32"},
    ),
    *rows(
        "Integer Arithmetic Instructions: dp4a, dp2a",
        "arithmetic",
        """
        dp4a.type.type dst, src, src, src
        dp2a.mode.type.type dst, src, src, src
        """,
        classes={"mode": "lo hi", "type": "u32 s32"},
    ),
    *rows(
        "Extended-Precision Integer Arithmetic Instructions: add.cc, addc, sub.cc, subc, mad.cc, madc",
        "arithmetic",
        """
        add.cc.type dst, src, src
        addc{.cc}.type dst, src, src
        sub.cc.type dst, src, src
        subc{.cc}.type dst, src, src
        mad{.hi,.lo}.cc.type dst, src, src, src
        madc{.hi,.lo}{.cc}.type dst, src, src, src
        """,
        classes=_WORDS,
    ),
]

FLOATING: list[Row] = [
    *rows(
        "Floating-Point Instructions: testp",
        "arithmetic",
        "testp.op.type dst, src",
        classes={"op": "finite infinite number notanumber normal subnormal", **_FLOATS},
    ),
    *rows("Floating-Point Instructions: copysign", "arithmetic", "copysign.type dst, src, src", classes=_FLOATS),
    *rows(
        "Floating-Point Instructions: add, sub, mul",
        "arithmetic",
        """
        add{.rnd}{.ftz}{.sat}.f32 dst, src, src
        add{.rnd}{.ftz}.f32x2 dst, src, src
        add{.rnd}.f64 dst, src, src
        sub{.rnd}{.ftz}{.sat}.f32 dst, src, src
        sub{.rnd}{.ftz}.f32x2 dst, src, src
        sub{.rnd}.f64 dst, src, src
        mul{.rnd}{.ftz}{.sat}.f32 dst, src, src
        mul{.rnd}{.ftz}.f32x2 dst, src, src
        mul{.rnd}.f64 dst, src, src
        """,
    ),
    *rows(
        "Floating-Point Instructions: fma, mad",
        "arithmetic",
        """
        fma.rnd{.ftz}{.sat}.f32 dst, src, src, src
        fma.rnd{.ftz}.f32x2 dst, src, src, src
        fma.rnd.f64 dst, src, src, src
        mad{.rnd}{.ftz}{.sat}.f32 dst, src, src, src
        mad.rnd.f64 dst, src, src, src
        """,
    ),
    *rows(
        "Floating-Point Instructions: div",
        "arithmetic",
        """
        div.approx{.ftz}.f32 dst, src, src
        div.full{.ftz}.f32 dst, src, src
        div.rnd{.ftz}.f32 dst, src, src
        div.rnd.f64 dst, src, src
        """,
    ),
    *rows(
        "Floating-Point Instructions: abs, neg",
        "arithmetic",
        """
        abs{.ftz}.f32 dst, src
        abs.f64 dst, src
        neg{.ftz}.f32 dst, src
        neg.f64 dst, src
        """,
    ),
    *rows(
        "Floating-Point Instructions: min, max",
        "arithmetic",
        """
        min{.ftz}{.NaN}{.xorsign.abs}.f32 dst, src, src{, src}
        min{.ftz}{.NaN}.abs.f32 dst, src, src, src
        min.f64 dst, src, src
        max{.ftz}{.NaN}{.xorsign.abs}.f32 dst, src, src{, src}
        max{.ftz}{.NaN}.abs.f32 dst, src, src, src
        max.f64 dst, src, src
        """,
    ),
    *rows(
        "Floating-Point Instructions: rcp, sqrt, rsqrt",
        "arithmetic",
        """
        rcp.approx{.ftz}.f32 dst, src
        rcp.rnd{.ftz}.f32 dst, src
        rcp.rnd.f64 dst, src
        rcp.approx.ftz.f64 dst, src
        sqrt.approx{.ftz}.f32 dst, src
        sqrt.rnd{.ftz}.f32 dst, src
        sqrt.rnd.f64 dst, src
        rsqrt.approx{.ftz}.f32 dst, src
        rsqrt.approx{.ftz}.f64 dst, src
        """,
    ),
    *rows(
        "Floating-Point Instructions: sin, cos, lg2, ex2, tanh",
        "arithmetic",
        """
        sin.approx{.ftz}.f32 dst, src
        cos.approx{.ftz}.f32 dst, src
        lg2.approx{.ftz}.f32 dst, src
        ex2.approx{.ftz}.f32 dst, src
        tanh.approx.f32 dst, src
        """,
    ),
]

HALF: list[Row] = [
    *rows(
        "Half Precision Floating-Point Instructions: add, sub, mul",
        "arithmetic",
        """
        add{.rn}{.ftz}{.sat}.h dst, src, src
        add{.rn}.bh dst, src, src
        sub{.rn}{.ftz}{.sat}.h dst, src, src
        sub{.rn}.bh dst, src, src
        mul{.rn}{.ftz}{.sat}.h dst, src, src
        mul{.rn}.bh dst, src, src
        """,
        classes=_HALVES,
    ),
    *rows(
        "Half Precision Floating-Point Instructions: fma",
        "arithmetic",
        """
        fma.rn{.ftz}{.sat}.h dst, src, src, src
        fma.rn{.ftz}.relu.h dst, src, src, src
        fma.rn{.relu}.bh dst, src, src, src
        fma.rn.oob{.relu}.any dst, src, src, src
        """,
        classes={**_HALVES, "any": "f16 f16x2 bf16 bf16x2"},
    ),
    *rows(
        "Half Precision Floating-Point Instructions: neg, abs",
        "arithmetic",
        """
        neg{.ftz}.h dst, src
        neg.bh dst, src
        abs{.ftz}.h dst, src
        abs.bh dst, src
        """,
        classes=_HALVES,
    ),
    *rows(
        "Half Precision Floating-Point Instructions: min, max",
        "arithmetic",
        """
        min{.ftz}{.NaN}{.xorsign.abs}.h dst, src, src
        min{.NaN}{.xorsign.abs}.bh dst, src, src
        max{.ftz}{.NaN}{.xorsign.abs}.h dst, src, src
        max{.NaN}{.xorsign.abs}.bh dst, src, src
        """,
        classes=_HALVES,
    ),
    *rows(
        "Half Precision Floating-Point Instructions: tanh, ex2",
        "arithmetic",
        """
        tanh.approx.any dst, src
        ex2.approx.h dst, src
        ex2.approx.ftz.bh dst, src
        """,
        classes={**_HALVES, "any": "f16 f16x2 bf16 bf16x2"},
    ),
    *rows(
        "Mixed Precision Floating-Point Instructions: add, sub, fma",
        "arithmetic",
        """
        add{.rnd}{.sat}.f32.atype dst, src, src
        sub{.rnd}{.sat}.f32.atype dst, src, src
        fma.rnd{.sat}.f32.atype dst, src, src, src
        """,
        classes={"atype": "f16 bf16"},
    ),
]

COMPARISON: list[Row] = [
    *rows(
        "Comparison and Selection Instructions: set",
        "arithmetic",
        """
        set.CmpOp{.ftz}.dtype.stype dst, src, src
        set.CmpOp.BoolOp{.ftz}.dtype.stype dst, src, src, src
        """,
        classes={"dtype": "u32 s32 f32", "stype": _SELECT},
    ),
    *rows(
        "Half Precision Comparison Instructions: set",
        "arithmetic",
        """
        set.CmpOp{.ftz}.dtype.stype dst, src, src
        set.CmpOp.BoolOp{.ftz}.dtype.stype dst, src, src, src
        """,
        classes={"dtype": "f16 bf16", "stype": "b16 b32 b64 u16 u32 u64 s16 s32 s64 f16 bf16 f32 f64"},
    ),
    *rows(
        "Half Precision Comparison Instructions: set",
        "arithmetic",
        """
        set.CmpOp{.ftz}.dtype.stype dst, src, src
        set.CmpOp.BoolOp{.ftz}.dtype.stype dst, src, src, src
        """,
        classes={"dtype": "u16 s16 u32 s32 f16x2 bf16x2", "stype": "f16 bf16 f16x2 bf16x2"},
    ),
    *rows(
        "Comparison and Selection Instructions: setp",
        "arithmetic",
        """
        setp.CmpOp{.ftz}.type dst, src, src
        setp.CmpOp.BoolOp{.ftz}.type dst, src, src, src
        """,
        classes={"type": _SELECT + " f16 f16x2 bf16 bf16x2"},
    ),
    *rows("Comparison and Selection Instructions: selp", "arithmetic", "selp.type dst, src, src, src", classes={"type": _SELECT}),
    *rows(
        "Comparison and Selection Instructions: slct",
        "arithmetic",
        """
        slct.dtype.s32 dst, src, src, src
        slct{.ftz}.dtype.f32 dst, src, src, src
        """,
        classes={"dtype": _SELECT},
    ),
]

LOGIC: list[Row] = [
    *rows(
        "Logic and Shift Instructions: and, or, xor, not",
        "arithmetic",
        """
        and.type dst, src, src
        or.type dst, src, src
        xor.type dst, src, src
        not.type dst, src
        """,
        classes={"type": "pred b16 b32 b64"},
    ),
    *rows("Logic and Shift Instructions: cnot", "arithmetic", "cnot.type dst, src", classes={"type": "b16 b32 b64"}),
    *rows(
        "Logic and Shift Instructions: lop3",
        "arithmetic",
        """
        lop3.b32 dst, src, src, src, src
        lop3.op.b32 dst, src, src, src, src, src
        """,
        classes={"op": "or and"},
    ),
    *rows(
        "Logic and Shift Instructions: shf",
        "arithmetic",
        "shf.direction.mode.b32 dst, src, src, src",
        classes={"direction": "l r", "mode": "clamp wrap"},
    ),
    *rows("Logic and Shift Instructions: shl", "arithmetic", "shl.type dst, src, src", classes={"type": "b16 b32 b64"}),
    *rows(
        "Logic and Shift Instructions: shr",
        "arithmetic",
        "shr.type dst, src, src",
        classes={"type": "b16 b32 b64 u16 u32 u64 s16 s32 s64"},
    ),
]

_NUMBERS = "u8 u16 u32 u64 s8 s16 s32 s64 bf16 f16 f32 f64"
_MINIFLOATS = {
    "f8x2type": "e4m3x2 e5m2x2",
    "f4x2type": "e2m1x2",
    "f6x2type": "e2m3x2 e3m2x2",
    "f4x4type": "e2m1x4",
    "f8x4type": "e4m3x4 e5m2x4",
    "f6x4type": "e2m3x4 e3m2x4",
    "fp16x2type": "f16x2 bf16x2",
}

CONVERSION: list[Row] = [
    *rows(
        "Data Movement and Conversion Instructions: mov",
        "arithmetic",
        "mov{.vec}.type dst, src",
        action="move",
        classes={"type": "pred b16 b32 b64 b128 u16 u32 u64 s16 s32 s64 f32 f64", "vec": "v2 v4"},
    ),
    *rows(
        "Data Movement and Conversion Instructions: prmt",
        "arithmetic",
        "prmt.b32{.mode} dst, src, src, src",
        classes={"mode": "f4e b4e rc8 ecl ecr rc16"},
    ),
    *rows(
        "Data Movement and Conversion Instructions: cvt",
        "arithmetic",
        """
        cvt{.round}{.ftz}{.sat}.dtype.atype dst, src
        cvt.frnd2{.relu}{.satfinite}.half.f32 dst, src
        cvt.frnd2{.relu}{.satfinite}.fp16x2type.f32 dst, src, src
        cvt.rs{.relu}{.satfinite}.fp16x2type.f32 dst, src, src, src
        cvt.rna{.satfinite}.tf32.f32 dst, src
        cvt.frnd2{.satfinite}{.relu}.tf32.f32 dst, src
        cvt.rn.satfinite{.relu}.f8x2type.f32 dst, src, src
        cvt.rn.satfinite{.relu}.f8x2type.fp16x2type dst, src
        cvt.rn{.relu}.fp16x2type.f8x2type dst, src
        cvt.rs{.relu}.satfinite.f8x4type.f32 dst, <src>, src
        cvt.rn.satfinite{.relu}.f4x2type.f32 dst, src, src
        cvt.rn.satfinite{.relu}.f4x2type.fp16x2type dst, src
        cvt.rn{.relu}.fp16x2type.f4x2type dst, src
        cvt.rs{.relu}.satfinite.f4x4type.f32 dst, <src>, src
        cvt.rn.satfinite{.relu}.f6x2type.f32 dst, src, src
        cvt.rn.satfinite{.relu}.f6x2type.fp16x2type dst, src
        cvt.rn{.relu}.fp16x2type.f6x2type dst, src
        cvt.rs{.relu}.satfinite.f6x4type.f32 dst, <src>, src
        cvt.frnd3{.satfinite}.ue8m0x2.f32 dst, src, src
        cvt.frnd3{.satfinite}.ue8m0x2.bf16x2 dst, src
        cvt.rn.bf16x2.ue8m0x2 dst, src
        cvt.rn.satfinite{.relu}{.scaled::n2::ue8m0}.s2f6x2.f32 dst, src, src{, scale-factor}
        cvt.rn.satfinite{.relu}{.scaled::n2::ue8m0}.s2f6x2.bf16x2 dst, src{, scale-factor}
        cvt.rn{.satfinite}{.relu}{.scaled::n2::ue8m0}.bf16x2.s2f6x2 dst, src{, scale-factor}
        """,
        classes={
            "round": "rni rzi rmi rpi rn rz rm rp",
            "dtype": _NUMBERS,
            "atype": _NUMBERS,
            "frnd2": "rn rz",
            "frnd3": "rz rp",
            "half": "f16 bf16",
            **_MINIFLOATS,
        },
    ),
    *rows(
        "Data Movement and Conversion Instructions: cvt.pack",
        "arithmetic",
        """
        cvt.pack.sat.to16.s32 dst, src, src
        cvt.pack.sat.to8.s32.b32 dst, src, src, src
        """,
        name="cvt.pack",
        classes={"to16": "u16 s16", "to8": "u2 s2 u4 s4 u8 s8"},
    ),
]

_VIDEO = {"type": "u32 s32", "op2": "add min max", "cmp": "eq ne lt le gt ge", "mode": "clamp wrap", "scale": "shr7 shr15"}


def _each(names: str, template: str) -> str:
    """The same forms for several instructions."""
    return "\n".join(template.replace("NAME", name) for name in names.split())


VIDEO: list[Row] = [
    *rows(
        "Scalar Video Instructions: vadd, vsub, vabsdiff, vmin, vmax",
        "arithmetic",
        _each("vadd vsub vabsdiff vmin vmax", "NAME.type.type.type{.sat}{.op2} dst, src, src{, src}"),
        classes=_VIDEO,
    ),
    *rows(
        "Scalar Video Instructions: vshl, vshr",
        "arithmetic",
        _each("vshl vshr", "NAME.type.type.u32{.sat}.mode{.op2} dst, src, src{, src}"),
        classes=_VIDEO,
    ),
    *rows(
        "Scalar Video Instructions: vmad",
        "arithmetic",
        "vmad.type.type.type{.po}{.sat}{.scale} dst, src, src, src",
        classes=_VIDEO,
    ),
    *rows("Scalar Video Instructions: vset", "arithmetic", "vset.type.type.cmp{.op2} dst, src, src{, src}", classes=_VIDEO),
    *rows(
        "SIMD Video Instructions: vadd2, vsub2, vavrg2, vabsdiff2, vmin2, vmax2, vset2 and the same with 4",
        "arithmetic",
        _each(
            "vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4",
            "NAME.type.type.type{.sat} dst, src, src, src\nNAME.type.type.type.add dst, src, src, src",
        )
        + "\n"
        + _each("vset2 vset4", "NAME.type.type.cmp{.add} dst, src, src, src"),
        classes=_VIDEO,
    ),
]

ROWS: list[Row] = [*INTEGER, *FLOATING, *HALF, *COMPARISON, *LOGIC, *CONVERSION, *VIDEO]
