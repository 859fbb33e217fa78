"""Rows of the matrix instructions: PTX ISA 9.7.14 (mma, wmma, ldmatrix, stmatrix, movmatrix) and 9.7.15 (wgmma).

`ldmatrix` and `stmatrix` access 16 bytes of shared memory at each row address, including the padding of 4-bit and 6-bit formats. Threads 0
to 8*num-1 give the addresses (0 to 16*num-1 for .m16n16), see `Row.address_lanes`. `mma` and `movmatrix` use registers only. `wmma.load`
and `wmma.store` have no size: the ISA does not specify which bytes a thread accesses ("Matrix Fragments for WMMA"). The shared-memory
operands of wgmma are descriptors in registers, whose footprint is known at run time only, so these rows have no touches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consan.instrument.effects import GlobalRead, GlobalWrite, ProductCommit, ProductFence, ProductOperand, ProductWait, Read, Write
from consan.instrument.effects.flags import MatrixRow
from consan.instrument.effects.makes import makes
from consan.instrument.isa.model import Row
from consan.instrument.isa.rows.build import rows

__all__ = ["ROWS"]

_WARP = "Warp Level Matrix Multiply-Accumulate Instructions: "


def _sharing(words: Mapping[str, str], operands: Mapping[str, Any]) -> MatrixRow:
    """How lanes share the row that one of them gives the address of (figures of 8x8 matrices only)."""
    if (words.get("shape"), words.get("type")) != ("m8n8", "b16"):
        return MatrixRow.NOBODY
    return MatrixRow.ELEMENTS if "trans" in words else MatrixRow.WORDS


LDMATRIX: list[Row] = [
    *rows(
        _WARP + "ldmatrix",
        "ldmatrix",
        """
        ldmatrix.sync.aligned.shape.num{.trans}{.ss}.type dst, [addr]
        ldmatrix.sync.aligned.m8n16.num{.ss}.b8x16.src_fmt dst, [addr]
        ldmatrix.sync.aligned.m16n16.num.trans{.ss}.b8x16.src_fmt dst, [addr]
        """,
        status="checked",
        touch="read addr ss 16",
        makes=makes(Read, at="addr", row=_sharing),
        classes={
            "shape": "m8n8 m16n16",
            "num": "x1 x2 x4",
            "ss": "shared shared::cta",
            "type": "b16 b8",
            "src_fmt": "b6x16_p32 b4x16_p64",
        },
    ),
    *rows(
        _WARP + "stmatrix",
        "stmatrix",
        "stmatrix.sync.aligned.shape.num{.trans}{.ss}.type [addr], src",
        status="checked",
        touch="write addr ss 16",
        makes=makes(Write, at="addr", value="src", row=_sharing),
        classes={"shape": "m8n8 m16n8", "num": "x1 x2 x4", "ss": "shared shared::cta", "type": "b16 b8"},
    ),
    *rows(_WARP + "movmatrix", "mma", "movmatrix.sync.aligned.m8n8.trans.b16 dst, src"),
]

_F8F6F4 = "e4m3 e5m2 e3m2 e2m3 e2m1"
_LAYOUT = {"alayout": "row col", "blayout": "row col"}

MMA: list[Row] = [
    *rows(
        _WARP + "mma",
        "mma",
        """
        mma.sync.aligned.m8n8k4.alayout.blayout.fp.f16.f16.fp dst, src, src, src
        mma.sync.aligned.half_shape.row.col.fp.f16.f16.fp dst, src, src, src
        mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 dst, src, src, src
        mma.sync.aligned.m16n8k8.row.col.f32.alternate.alternate.f32 dst, src, src, src
        mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 dst, src, src, src
        mma.sync.aligned.f8_shape.row.col.fp.f8.f8.fp dst, src, src, src
        mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.fp.f8f6f4.f8f6f4.fp dst, src, src, src
        mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale{.scale_vec::2X}.f32.e2m1.e2m1.f32.ue8m0 \
        dst, src, src, src, src, src, src, src
        mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec.f32.e2m1.e2m1.f32.stype \
        dst, src, src, src, src, src, src, src
        mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale{.scale_vec::1X}.f32.f8f6f4.f8f6f4.f32.ue8m0 \
        dst, src, src, src, src, src, src, src
        mma.sync.aligned.f64_shape.row.col.f64.f64.f64.f64{.rnd} dst, src, src, src
        mma.sync.aligned.byte_shape.row.col{.satfinite}.s32.byte.byte.s32 dst, src, src, src
        mma.sync.aligned.nibble_shape.row.col{.satfinite}.s32.nibble.nibble.s32 dst, src, src, src
        mma.sync.aligned.bit_shape.row.col.s32.b1.b1.s32.bitOp.popc dst, src, src, src
        """,
        classes={
            **_LAYOUT,
            "fp": "f16 f32",
            "half_shape": "m16n8k8 m16n8k16",
            "alternate": "bf16 tf32",
            "f8_shape": "m16n8k16 m16n8k32",
            "f8": "e4m3 e5m2",
            "f8f6f4": _F8F6F4,
            "scale_vec": "scale_vec::2X scale_vec::4X",
            "stype": "ue8m0 ue4m3",
            "f64_shape": "m8n8k4 m16n8k4 m16n8k8 m16n8k16",
            "byte_shape": "m8n8k16 m16n8k16 m16n8k32",
            "byte": "u8 s8",
            "nibble_shape": "m8n8k32 m16n8k32 m16n8k64",
            "nibble": "u4 s4",
            "bit_shape": "m8n8k128 m16n8k128 m16n8k256",
            "bitOp": "xor and",
        },
    ),
    *rows(
        _WARP + "mma.sp",
        "mma",
        """
        mma.spvariant.sync.aligned.half_shape.row.col.fp.f16.f16.fp dst, src, src, src, src, imm
        mma.spvariant.sync.aligned.half_shape.row.col.f32.bf16.bf16.f32 dst, src, src, src, src, imm
        mma.spvariant.sync.aligned.tf32_shape.row.col.f32.tf32.tf32.f32 dst, src, src, src, src, imm
        mma.spvariant.sync.aligned.m16n8k64.row.col.f32.f8.f8.f32 dst, src, src, src, src, imm
        mma.spvariant.sync.aligned.m16n8k64.row.col.kind::f8f6f4.fp.f8f6f4.f8f6f4.fp dst, src, src, src, src, imm
        mma.spvariant.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale{.scale_vec::2X}.f32.e2m1.e2m1.f32.ue8m0 \
        dst, src, src, src, src, imm, src, src, src, src
        mma.spvariant.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec.f32.e2m1.e2m1.f32.stype \
        dst, src, src, src, src, imm, src, src, src, src
        mma.spvariant.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale{.scale_vec::1X}.f32.f8f6f4.f8f6f4.f32.ue8m0 \
        dst, src, src, src, src, imm, src, src, src, src
        mma.spvariant.sync.aligned.byte_shape.row.col{.satfinite}.s32.byte.byte.s32 dst, src, src, src, src, imm
        mma.spvariant.sync.aligned.nibble_shape.row.col{.satfinite}.s32.nibble.nibble.s32 dst, src, src, src, src, imm
        """,
        classes={
            "spvariant": "sp sp::ordered_metadata",
            "fp": "f16 f32",
            "half_shape": "m16n8k16 m16n8k32",
            "tf32_shape": "m16n8k8 m16n8k16",
            "f8": "e4m3 e5m2",
            "f8f6f4": _F8F6F4,
            "scale_vec": "scale_vec::2X scale_vec::4X",
            "stype": "ue8m0 ue4m3",
            "byte_shape": "m16n8k32 m16n8k64",
            "byte": "u8 s8",
            "nibble_shape": "m16n8k64 m16n8k128",
            "nibble": "u4 s4",
        },
    ),
]

_WMMA = {
    "matrix": "a b c",
    "layout": "row col",
    **_LAYOUT,
    "shape": "m16n16k16 m8n32k16 m32n8k16 m16n16k8 m8n8k4 m8n8k32 m8n8k128",
    "type": "f16 bf16 tf32 f32 f64 s8 u8 s4 u4 b1 s32",
    "fp": "f16 f32",
    "integer": "s8 u8 s4 u4",
    "alternate": "bf16 tf32",
}


def _wmma_memory(section: str, block: str, access: str) -> list[Row]:
    shared, outer = (Read, GlobalRead) if access == "read" else (Write, GlobalWrite)
    made = (makes(outer, address="addr").where_checked(), makes(shared, at="addr"))
    columns: dict[str, Any] = {"status": "recorded", "touch": f"{access} addr ss 0", "makes": made}
    in_global = rows(_WARP + section, "wmma", block.replace("{.ss}", ".ss"), **columns, classes={**_WMMA, "ss": "global"})
    return in_global + rows(_WARP + section, "wmma", block, **columns, classes={**_WMMA, "ss": "shared shared::cta"})


WMMA: list[Row] = [
    *_wmma_memory("wmma.load", "wmma.load.matrix.sync.aligned.layout.shape{.ss}.type dst, [addr]{, stride}", "read"),
    *_wmma_memory("wmma.store", "wmma.store.d.sync.aligned.layout.shape{.ss}.type [addr], src{, stride}", "write"),
    *rows(
        _WARP + "wmma.mma",
        "mma",
        """
        wmma.mma.sync.aligned.alayout.blayout.shape.fp.fp dst, src, src, src
        wmma.mma.sync.aligned.alayout.blayout.shape.s32.integer.integer.s32{.satfinite} dst, src, src, src
        wmma.mma.sync.aligned.alayout.blayout.shape.f32.alternate.alternate.f32 dst, src, src, src
        wmma.mma.sync.aligned.alayout.blayout.shape{.rnd}.f64.f64.f64.f64 dst, src, src, src
        wmma.mma.bitOp.popc.sync.aligned.row.col.shape.s32.b1.b1.s32 dst, src, src, src
        """,
        classes={**_WMMA, "bitOp": "xor and"},
    ),
]


def _wgmma_shapes(depth: int) -> str:
    return " ".join(f"m64n{columns}k{depth}" for columns in range(8, 257, 8))


_WGMMA = "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions: "
_WGMMA_CLASSES = {
    "fp": "f16 f32",
    "k8": _wgmma_shapes(8),
    "k16": _wgmma_shapes(16),
    "k32": _wgmma_shapes(32),
    "k64": _wgmma_shapes(64),
    "k256": _wgmma_shapes(256),
    "f8": "e4m3 e5m2",
    "byte": "s8 u8",
}

WGMMA: list[Row] = [
    *rows(
        _WGMMA + "wgmma.mma_async",
        "wgmma",
        """
        wgmma.mma_async.sync.aligned.k16.fp.f16.f16 acc, src, desc, src, imm, imm, imm{, imm}
        wgmma.mma_async.sync.aligned.k16.f32.bf16.bf16 acc, src, desc, src, imm, imm, imm{, imm}
        wgmma.mma_async.sync.aligned.k8.f32.tf32.tf32 acc, src, desc, src, imm, imm
        wgmma.mma_async.sync.aligned.k32.fp.f8.f8 acc, src, desc, src, imm, imm
        wgmma.mma_async.sync.aligned.k32{.satfinite}.s32.byte.byte acc, src, desc, src
        wgmma.mma_async.sync.aligned.k256.s32.b1.b1.and.popc acc, src, desc, src
        """,
        name="wgmma.mma_async",
        makes=makes(ProductOperand),
        status="checked",
        completion="wgmma-group",
        classes=_WGMMA_CLASSES,
    ),
    *rows(
        _WGMMA + "wgmma.mma_async.sp",
        "wgmma",
        """
        wgmma.mma_async.sp.sync.aligned.k32.fp.f16.f16 acc, src, desc, src, imm, src, imm, imm, imm{, imm}
        wgmma.mma_async.sp.sync.aligned.k32.f32.bf16.bf16 acc, src, desc, src, imm, src, imm, imm, imm{, imm}
        wgmma.mma_async.sp.sync.aligned.k16.f32.tf32.tf32 acc, src, desc, src, imm, src, imm, imm
        wgmma.mma_async.sp.sync.aligned.k64.fp.f8.f8 acc, src, desc, src, imm, src, imm, imm
        wgmma.mma_async.sp.sync.aligned.k64{.satfinite}.s32.byte.byte acc, src, desc, src, imm, src
        """,
        name="wgmma.mma_async.sp",
        action="mma_async",
        makes=makes(ProductOperand),
        status="recorded",
        completion="wgmma-group",
        classes=_WGMMA_CLASSES,
    ),
    *rows(_WGMMA + "wgmma.fence", "wgmma", "wgmma.fence.sync.aligned", name="wgmma.fence", status="checked", makes=makes(ProductFence)),
    *rows(
        _WGMMA + "wgmma.commit_group",
        "wgmma",
        "wgmma.commit_group.sync.aligned",
        name="wgmma.commit_group",
        completion="wgmma-group",
        status="checked",
        makes=makes(ProductCommit),
    ),
    *rows(
        _WGMMA + "wgmma.wait_group",
        "wgmma",
        "wgmma.wait_group.sync.aligned group-count",
        name="wgmma.wait_group",
        completion="wgmma-group",
        status="checked",
        makes=makes(ProductWait, pending="group-count"),
    ),
]

ROWS: list[Row] = [*LDMATRIX, *MMA, *WMMA, *WGMMA]
