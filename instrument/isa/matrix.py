"""Rows of the matrix instructions: PTX ISA 9.7.14 (mma, wmma, ldmatrix, stmatrix, movmatrix), 9.7.15 (wgmma) and 9.7.16 (tcgen05).

`ldmatrix` and `stmatrix` access 16 bytes of shared memory at each row address, including the padding of 4-bit and 6-bit formats. Threads 0
to 8*num-1 give the addresses (0 to 16*num-1 for .m16n16), see `Row.address_lanes`. `mma` and `movmatrix` use registers only. `wmma.load`
and `wmma.store` are not modelled: the ISA does not specify which bytes a thread accesses ("Matrix Fragments for WMMA"). The shared-memory
operands of wgmma and tcgen05 are descriptors in registers, whose footprint is known at run time only, so these rows have no touches.

tcgen05: the virtual machine executes it and the recording engine takes it; called hooks do not know tensor memory. Tensor memory is named
by `taddr` and other operands (lane in the upper, column in the lower half of an address), so it is no touch. `completion` says what
observes the end: an mbarrier after `tcgen05.commit`, or `tcgen05.wait::ld` and `tcgen05.wait::st`.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from consan.instrument.effects import Effect, ProductCommit, ProductWait, TensorDealloc, TensorFence, TensorRelinquish, TensorWait
from consan.instrument.effects.makes import Makes, makes
from consan.instrument.isa.build import rows
from consan.instrument.isa.model import Row

__all__ = ["ROWS"]

_WARP = "Warp Level Matrix Multiply-Accumulate Instructions: "

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
    columns: dict[str, Any] = {"status": "recorded", "touch": f"{access} addr ss 0"}
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
        status="recorded",
        completion="wgmma-group",
        classes=_WGMMA_CLASSES,
    ),
    *rows(_WGMMA + "wgmma.fence", "wgmma", "wgmma.fence.sync.aligned", name="wgmma.fence", status="checked"),
    *rows(
        _WGMMA + "wgmma.commit_group",
        "wgmma",
        "wgmma.commit_group.sync.aligned",
        name="wgmma.commit_group",
        status="checked",
        makes=makes(ProductCommit),
    ),
    *rows(
        _WGMMA + "wgmma.wait_group",
        "wgmma",
        "wgmma.wait_group.sync.aligned group-count",
        name="wgmma.wait_group",
        status="checked",
        makes=makes(ProductWait, pending="group-count"),
    ),
]

_TCGEN05 = "TensorCore 5th Generation Family Instructions: "
_COLLECT = " ".join(f"collector::a::{op}" for op in ("fill", "use", "lastuse", "discard"))
_COLLECT_B = " ".join(f"collector::b{i}::{op}" for i, op in product(range(4), ("fill", "use", "lastuse", "discard")))
_TC_CLASSES = {
    "shape1": "16x64b 16x128b 16x256b 32x32b",
    "shape2": "16x32bx2",
    "shape3": "32x32b",
    "num": "x1 x2 x4 x8 x16 x32 x64 x128",
    "redOp": "min max",
    "type": "u32 s32",
    "shape": "128x256b 4x256b 128x128b 64x128b 32x128b",
    "warps": "warpx2::02_13 warpx2::01_23 warpx4",
    "src_fmt": "b6x16_p32 b4x16_p64",
    "kind": "kind::f16 kind::tf32 kind::f8f6f4 kind::i8",
    "mxkind": "kind::mxf8f6f4 kind::mxf4 kind::mxf4nvf4",
    "scale_vectorsize": "scale_vec::1X scale_vec::2X scale_vec::4X block16 block32",
    "collector_usage": _COLLECT,
    "collector_b": _COLLECT_B,
}


def _tcgen05(word: str, block: str, *, ss: str = "shared::cta", **columns: Any) -> list[Row]:
    name, classes = f"tcgen05.{word}", {**_TC_CLASSES, "ss": ss}
    return rows(f"{_TCGEN05}{name}", "tcgen05", block, name=name, status="recorded", classes=classes, **columns)


def _of_group(kind: type[Effect], **leaves: str) -> Makes:
    return makes(kind, **leaves, pair=".cta_group::2", single=".cta_group::1")


TCGEN05: list[Row] = [
    *_tcgen05("alloc", "tcgen05.alloc.cta_group.sync.aligned{.ss}.b32 [addr], columns", touch="write addr ss 4"),
    *_tcgen05(
        "dealloc",
        "tcgen05.dealloc.cta_group.sync.aligned.b32 taddr, columns",
        makes=_of_group(TensorDealloc, columns="columns", cells="taddr"),
    ),
    *_tcgen05("relinquish_alloc_permit", "tcgen05.relinquish_alloc_permit.cta_group.sync.aligned", makes=_of_group(TensorRelinquish)),
    *_tcgen05(
        "ld",
        """
        tcgen05.ld.sync.aligned.shape1.num{.pack::16b}.b32 dst, [taddr]
        tcgen05.ld.sync.aligned.shape2.num{.pack::16b}.b32 dst, [taddr], half
        tcgen05.ld.red.sync.aligned.shape3.num.redOp{.abs}{.NaN}.f32 dst, dst, [taddr]
        tcgen05.ld.red.sync.aligned.shape2.num.redOp{.abs}{.NaN}.f32 dst, dst, [taddr], half
        tcgen05.ld.red.sync.aligned.shape3.num.redOp.type dst, dst, [taddr]
        tcgen05.ld.red.sync.aligned.shape2.num.redOp.type dst, dst, [taddr], half
        """,
        completion="wait::ld",
    ),
    *_tcgen05(
        "st",
        """
        tcgen05.st.sync.aligned.shape1.num{.unpack::16b}.b32 [taddr], src
        tcgen05.st.sync.aligned.shape2.num{.unpack::16b}.b32 [taddr], half, src
        """,
        completion="wait::st",
    ),
    *_tcgen05("wait::ld", "tcgen05.wait::ld.sync.aligned", completion="wait::ld", makes=makes(TensorWait, what=1)),
    *_tcgen05("wait::st", "tcgen05.wait::st.sync.aligned", completion="wait::st", makes=makes(TensorWait, what=2)),
    *_tcgen05("cp", "tcgen05.cp.cta_group.shape{.warps}{.b8x16.src_fmt} [taddr], desc", completion="mbarrier"),
    *_tcgen05("shift", "tcgen05.shift.cta_group.down [taddr]", completion="mbarrier"),
    *_tcgen05("fence::before_thread_sync", "tcgen05.fence::before_thread_sync", makes=makes(TensorFence)),
    *_tcgen05("fence::after_thread_sync", "tcgen05.fence::after_thread_sync", makes=makes(TensorFence, after=1)),
    *_tcgen05(
        "commit",
        "tcgen05.commit.cta_group.mbarrier::arrive::one{.ss}{.multicast}.b64 [mbar]{, cta-mask}",
        ss="shared::cluster",
        touch="rmw mbar ss 8",
        completion="mbarrier",
        scope="cluster",
    ),
    *_tcgen05(
        "mma",
        """
        tcgen05.mma.cta_group.kind{.ashift}{.collector_usage} [taddr], a, b-desc, idesc{, <disabled>}, enable{, scale-d}
        tcgen05.mma.cta_group.mxkind.block_scale{.scale_vectorsize}{.collector_usage} \
        [taddr], a, b-desc, idesc, [scale-a], [scale-b], enable
        tcgen05.mma.sp.cta_group.kind{.ashift}{.collector_usage} [taddr], a, b-desc, [meta], idesc{, <disabled>}, enable{, scale-d}
        tcgen05.mma.sp.cta_group.mxkind.block_scale{.scale_vectorsize}{.collector_usage} \
        [taddr], a, b-desc, [meta], idesc, [scale-a], [scale-b], enable
        tcgen05.mma.ws.cta_group.kind{.collector_b} [taddr], a, b-desc, idesc, enable{, zero-columns}
        tcgen05.mma.ws.sp.cta_group.kind{.collector_b} [taddr], a, b-desc, [meta], idesc, enable{, zero-columns}
        """,
        completion="mbarrier",
    ),
]

ROWS: list[Row] = [*LDMATRIX, *MMA, *WMMA, *WGMMA, *TCGEN05]
