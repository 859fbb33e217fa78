"""Rows of the instructions that compare, select, combine bits and shift: PTX ISA 9.7.6 to 9.7.8. They access no memory."""

from __future__ import annotations

from consan.instrument.isa.model import Row
from consan.instrument.isa.rows.build import arithmetic

__all__ = ["ROWS"]

_SELECT = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"

COMPARISON: list[Row] = [
    *arithmetic(
        "Comparison and Selection Instructions: set",
        """
        set.CmpOp{.ftz}.dtype.stype dst, src, src
        set.CmpOp.BoolOp{.ftz}.dtype.stype dst, src, src, src
        """,
        classes={"dtype": "u32 s32 f32", "stype": _SELECT},
    ),
    *arithmetic(
        "Half Precision Comparison Instructions: set",
        """
        set.CmpOp{.ftz}.dtype.stype dst, src, src
        set.CmpOp.BoolOp{.ftz}.dtype.stype dst, src, src, src
        """,
        classes={"dtype": "f16 bf16", "stype": "b16 b32 b64 u16 u32 u64 s16 s32 s64 f16 bf16 f32 f64"},
    ),
    *arithmetic(
        "Half Precision Comparison Instructions: set",
        """
        set.CmpOp{.ftz}.dtype.stype dst, src, src
        set.CmpOp.BoolOp{.ftz}.dtype.stype dst, src, src, src
        """,
        classes={"dtype": "u16 s16 u32 s32 f16x2 bf16x2", "stype": "f16 bf16 f16x2 bf16x2"},
    ),
    *arithmetic(
        "Comparison and Selection Instructions: setp",
        """
        setp.CmpOp{.ftz}.type dst, src, src
        setp.CmpOp.BoolOp{.ftz}.type dst, src, src, src
        """,
        classes={"type": _SELECT + " f16 f16x2 bf16 bf16x2"},
    ),
    *arithmetic("Comparison and Selection Instructions: selp", "selp.type dst, src, src, src", classes={"type": _SELECT}),
    *arithmetic(
        "Comparison and Selection Instructions: slct",
        """
        slct.dtype.s32 dst, src, src, src
        slct{.ftz}.dtype.f32 dst, src, src, src
        """,
        classes={"dtype": _SELECT},
    ),
]

LOGIC: list[Row] = [
    *arithmetic(
        "Logic and Shift Instructions: and, or, xor, not",
        """
        and.type dst, src, src
        or.type dst, src, src
        xor.type dst, src, src
        not.type dst, src
        """,
        classes={"type": "pred b16 b32 b64"},
    ),
    *arithmetic("Logic and Shift Instructions: cnot", "cnot.type dst, src", classes={"type": "b16 b32 b64"}),
    *arithmetic(
        "Logic and Shift Instructions: lop3",
        """
        lop3.b32 dst, src, src, src, src
        lop3.op.b32 dst, src, src, src, src, src
        """,
        classes={"op": "or and"},
    ),
    *arithmetic(
        "Logic and Shift Instructions: shf",
        "shf.direction.mode.b32 dst, src, src, src",
        classes={"direction": "l r", "mode": "clamp wrap"},
    ),
    *arithmetic("Logic and Shift Instructions: shl", "shl.type dst, src, src", classes={"type": "b16 b32 b64"}),
    *arithmetic(
        "Logic and Shift Instructions: shr",
        "shr.type dst, src, src",
        classes={"type": "b16 b32 b64 u16 u32 u64 s16 s32 s64"},
    ),
]

ROWS: list[Row] = [*COMPARISON, *LOGIC]
