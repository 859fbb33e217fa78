"""Rows of `mov`, `prmt` and the conversions: PTX ISA 9.7.9, the part that accesses no memory."""

from __future__ import annotations

from consan.instrument.isa.model import Row
from consan.instrument.isa.rows.build import arithmetic

__all__ = ["ROWS"]

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

ROWS: list[Row] = [
    *arithmetic(
        "Data Movement and Conversion Instructions: mov",
        "mov{.vec}.type dst, src",
        action="move",
        classes={"type": "pred b16 b32 b64 b128 u16 u32 u64 s16 s32 s64 f32 f64", "vec": "v2 v4"},
    ),
    *arithmetic(
        "Data Movement and Conversion Instructions: prmt",
        "prmt.b32{.mode} dst, src, src, src",
        classes={"mode": "f4e b4e rc8 ecl ecr rc16"},
    ),
    *arithmetic(
        "Data Movement and Conversion Instructions: cvt",
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
    *arithmetic(
        "Data Movement and Conversion Instructions: cvt.pack",
        """
        cvt.pack.sat.to16.s32 dst, src, src
        cvt.pack.sat.to8.s32.b32 dst, src, src, src
        """,
        name="cvt.pack",
        classes={"to16": "u16 s16", "to8": "u2 s2 u4 s4 u8 s8"},
    ),
]
