"""Rows of the instructions that compute with numbers in registers: PTX ISA 9.7.1 to 9.7.5.

They access no memory, so their status is neutral. The carry flag of the extended-precision instructions is an implicit operand that the
table does not list.
"""

from __future__ import annotations

from consan.instrument.isa.model import Row
from consan.instrument.isa.rows.build import arithmetic

__all__ = ["ROWS"]

_INTEGERS = {"type": "u16 u32 u64 s16 s32 s64"}
_BITS = {"type": "b32 b64"}
_WORDS = {"type": "u32 s32 u64 s64"}
_FLOATS = {"type": "f32 f64"}
_HALVES = {"h": "f16 f16x2", "bh": "bf16 bf16x2"}

INTEGER: list[Row] = [
    *arithmetic(
        "Integer Arithmetic Instructions: add, sub",
        """
        add.type dst, src, src
        add{.sat}.s32 dst, src, src
        sub.type dst, src, src
        sub{.sat}.s32 dst, src, src
        """,
        classes={"type": "u16 u32 u64 s16 s32 s64 u16x2 s16x2"},
    ),
    *arithmetic(
        "Integer Arithmetic Instructions: mul, mad",
        """
        mul.mode.type dst, src, src
        mad.mode.type dst, src, src, src
        mad.hi.sat.s32 dst, src, src, src
        """,
        classes={"mode": "hi lo wide", **_INTEGERS},
    ),
    *arithmetic(
        "Integer Arithmetic Instructions: mul24, mad24",
        """
        mul24.mode.type dst, src, src
        mad24.mode.type dst, src, src, src
        mad24.hi.sat.s32 dst, src, src, src
        """,
        classes={"mode": "hi lo", "type": "u32 s32"},
    ),
    *arithmetic(
        "Integer Arithmetic Instructions: sad, div, rem",
        """
        sad.type dst, src, src, src
        div.type dst, src, src
        rem.type dst, src, src
        """,
        classes=_INTEGERS,
    ),
    *arithmetic(
        "Integer Arithmetic Instructions: abs, neg",
        """
        abs.type dst, src
        neg.type dst, src
        """,
        classes={"type": "s16 s32 s64"},
    ),
    *arithmetic(
        "Integer Arithmetic Instructions: min, max",
        """
        min.atype dst, src, src
        min{.relu}.btype dst, src, src
        max.atype dst, src, src
        max{.relu}.btype dst, src, src
        """,
        classes={"atype": "u16 u32 u64 u16x2 s16 s64", "btype": "s16x2 s32"},
    ),
    *arithmetic(
        "Integer Arithmetic Instructions: popc, clz, brev",
        """
        popc.type dst, src
        clz.type dst, src
        brev.type dst, src
        """,
        classes=_BITS,
    ),
    *arithmetic("Integer Arithmetic Instructions: bfind", "bfind{.shiftamt}.type dst, src", classes=_WORDS),
    *arithmetic("Integer Arithmetic Instructions: fns", "fns.b32 dst, src, src, src"),
    *arithmetic("Integer Arithmetic Instructions: bfe", "bfe.type dst, src, src, src", classes=_WORDS),
    *arithmetic("Integer Arithmetic Instructions: bfi", "bfi.type dst, src, src, src, src", classes=_BITS),
    *arithmetic(
        "Integer Arithmetic Instructions: szext, bmsk",
        """
        szext.mode.type dst, src, src
        bmsk.mode.b32 dst, src, src
        """,
        classes={"mode": "clamp wrap", "type": "u32 s32"},
    ),
    *arithmetic(
        "Integer Arithmetic Instructions: dp4a, dp2a",
        """
        dp4a.type.type dst, src, src, src
        dp2a.mode.type.type dst, src, src, src
        """,
        classes={"mode": "lo hi", "type": "u32 s32"},
    ),
    *arithmetic(
        "Extended-Precision Integer Arithmetic Instructions: add.cc, addc, sub.cc, subc, mad.cc, madc",
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
    *arithmetic(
        "Floating-Point Instructions: testp",
        "testp.op.type dst, src",
        classes={"op": "finite infinite number notanumber normal subnormal", **_FLOATS},
    ),
    *arithmetic("Floating-Point Instructions: copysign", "copysign.type dst, src, src", classes=_FLOATS),
    *arithmetic(
        "Floating-Point Instructions: add, sub, mul",
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
    *arithmetic(
        "Floating-Point Instructions: fma, mad",
        """
        fma.rnd{.ftz}{.sat}.f32 dst, src, src, src
        fma.rnd{.ftz}.f32x2 dst, src, src, src
        fma.rnd.f64 dst, src, src, src
        mad{.rnd}{.ftz}{.sat}.f32 dst, src, src, src
        mad.rnd.f64 dst, src, src, src
        """,
    ),
    *arithmetic(
        "Floating-Point Instructions: div",
        """
        div.approx{.ftz}.f32 dst, src, src
        div.full{.ftz}.f32 dst, src, src
        div.rnd{.ftz}.f32 dst, src, src
        div.rnd.f64 dst, src, src
        """,
    ),
    *arithmetic(
        "Floating-Point Instructions: abs, neg",
        """
        abs{.ftz}.f32 dst, src
        abs.f64 dst, src
        neg{.ftz}.f32 dst, src
        neg.f64 dst, src
        """,
    ),
    *arithmetic(
        "Floating-Point Instructions: min, max",
        """
        min{.ftz}{.NaN}{.xorsign.abs}.f32 dst, src, src{, src}
        min{.ftz}{.NaN}.abs.f32 dst, src, src, src
        min.f64 dst, src, src
        max{.ftz}{.NaN}{.xorsign.abs}.f32 dst, src, src{, src}
        max{.ftz}{.NaN}.abs.f32 dst, src, src, src
        max.f64 dst, src, src
        """,
    ),
    *arithmetic(
        "Floating-Point Instructions: rcp, sqrt, rsqrt",
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
    *arithmetic(
        "Floating-Point Instructions: sin, cos, lg2, ex2, tanh",
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
    *arithmetic(
        "Half Precision Floating-Point Instructions: add, sub, mul",
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
    *arithmetic(
        "Half Precision Floating-Point Instructions: fma",
        """
        fma.rn{.ftz}{.sat}.h dst, src, src, src
        fma.rn{.ftz}.relu.h dst, src, src, src
        fma.rn{.relu}.bh dst, src, src, src
        fma.rn.oob{.relu}.any dst, src, src, src
        """,
        classes={**_HALVES, "any": "f16 f16x2 bf16 bf16x2"},
    ),
    *arithmetic(
        "Half Precision Floating-Point Instructions: neg, abs",
        """
        neg{.ftz}.h dst, src
        neg.bh dst, src
        abs{.ftz}.h dst, src
        abs.bh dst, src
        """,
        classes=_HALVES,
    ),
    *arithmetic(
        "Half Precision Floating-Point Instructions: min, max",
        """
        min{.ftz}{.NaN}{.xorsign.abs}.h dst, src, src
        min{.NaN}{.xorsign.abs}.bh dst, src, src
        max{.ftz}{.NaN}{.xorsign.abs}.h dst, src, src
        max{.NaN}{.xorsign.abs}.bh dst, src, src
        """,
        classes=_HALVES,
    ),
    *arithmetic(
        "Half Precision Floating-Point Instructions: tanh, ex2",
        """
        tanh.approx.any dst, src
        ex2.approx.h dst, src
        ex2.approx.ftz.bh dst, src
        """,
        classes={**_HALVES, "any": "f16 f16x2 bf16 bf16x2"},
    ),
    *arithmetic(
        "Mixed Precision Floating-Point Instructions: add, sub, fma",
        """
        add{.rnd}{.sat}.f32.atype dst, src, src
        sub{.rnd}{.sat}.f32.atype dst, src, src
        fma.rnd{.sat}.f32.atype dst, src, src, src
        """,
        classes={"atype": "f16 bf16"},
    ),
]

ROWS: list[Row] = [*INTEGER, *FLOATING, *HALF]
