"""Rows of tcgen05: PTX ISA 9.7.16.

The virtual machine executes it and the recording engine takes it; called hooks do not know tensor memory. Tensor memory is named by `taddr`
and other operands (lane in the upper, column in the lower half of an address), so it is no touch. `completion` says what observes the end:
an mbarrier after `tcgen05.commit`, or `tcgen05.wait::ld` and `tcgen05.wait::st`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from typing import Any

from consan.instrument.effects import (
    Effect,
    TensorAlloc,
    TensorAllocRequest,
    TensorCommit,
    TensorCp,
    TensorDealloc,
    TensorFence,
    TensorLd,
    TensorMma,
    TensorRelinquish,
    TensorShift,
    TensorSt,
    TensorWait,
)
from consan.instrument.effects.makes import Attribute, Makes, makes
from consan.instrument.isa.model import Row
from consan.instrument.isa.roles import immediate_value
from consan.instrument.isa.rows.build import rows

__all__ = ["ROWS"]

_TCGEN05 = "TensorCore 5th Generation Family Instructions: "
_COLLECT = " ".join(f"collector::a::{op}" for op in ("fill", "use", "lastuse", "discard"))
_COLLECT_B = " ".join(f"collector::b{i}::{op}" for i, op in product(range(4), ("fill", "use", "lastuse", "discard")))
_CLASSES = {
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
Words = Mapping[str, str]
Operands = Mapping[str, Any]

# Lanes of a warp, and columns of .x1 (ISA "Matrix and Data movement shape"). The last has twice the columns, `half` apart.
_MOVES = {"32x32b": (32, 1), "16x64b": (16, 2), "16x128b": (16, 4), "16x256b": (16, 8), "16x32bx2": (16, 1)}
_HALVES = ("pack::16b", "unpack::16b")  # registers of two columns
# The order is that of consan/checker/source/tensor_memory/tensor_shapes.hpp.
_KINDS = tuple(f"kind::{name}" for name in ("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"))
_IN_TENSOR_MEMORY, _SPARSE, _SCALED, _WEIGHT_STATIONARY, _SHIFTED = 1, 2, 4, 8, 32
_FORMS = {"sp": _SPARSE, "block_scale": _SCALED, "ws": _WEIGHT_STATIONARY, "ashift": _SHIFTED}
_COLLECTOR = re.compile(r"collector::([ab])(\d?)::(\w+)$")
_USAGES = {"fill": 1, "use": 2, "lastuse": 3}  # of a collector buffer; others leave it empty


def _shape(words: Words) -> str:
    return next(words[name] for name in ("shape1", "shape2", "shape3") if name in words)


def _lanes(words: Words, operands: Operands) -> int:
    return _MOVES[_shape(words)][0]


def _columns(words: Words, operands: Operands) -> int:
    return _MOVES[_shape(words)][1] * int(words["num"][1:]) * (2 if any(word in words for word in _HALVES) else 1)


def _distance(words: Words, operands: Operands) -> int:
    """0 where there is no other half, else one more than its distance."""
    return immediate_value(operands["half"]) + 1 if "half" in operands else 0


def _copied(bits: int) -> Attribute:
    """The bits of a row that a copy moves, over this many."""
    return lambda words, operands: int(words["shape"].rstrip("b").split("x")[1]) // bits


def _rows(words: Words, operands: Operands) -> int:
    return int(words["shape"].split("x")[0])


def _factors(words: Words, operands: Operands) -> int:
    return _KINDS.index(words.get("kind") or words["mxkind"])


def _form(words: Words, operands: Operands) -> int:
    """Bits of the form: A in tensor memory, and modifiers."""
    in_memory = _IN_TENSOR_MEMORY * (type(operands["a"]).__name__ == "Address")
    return in_memory | sum(bit for word, bit in _FORMS.items() if word in words)


def _disabled(words: Words, operands: Operands) -> int:
    return len(operands["disabled"].elements) if "disabled" in operands else 0


def _collector(words: Words, operands: Operands) -> int:
    """The collector buffer that a product names, and 4 times its number: A, then B 0 to 3. A product without the word discards."""
    found = _COLLECTOR.match(words.get("collector_usage") or words.get("collector_b", ""))
    if found is None:
        return 4 * ("ws" in words)
    return 4 * (1 + int(found[2]) if found[1] == "b" else 0) + _USAGES.get(found[3], 0)


def _tcgen05(word: str, block: str, *made: Makes, ss: str = "shared::cta", **columns: Any) -> list[Row]:
    name, classes = f"tcgen05.{word}", {**_CLASSES, "ss": ss}
    return rows(f"{_TCGEN05}{name}", "tcgen05", block, name=name, status="recorded", classes=classes, makes=made, **columns)


def _of_group(kind: type[Effect], **leaves: str | int | Attribute) -> Makes:
    return makes(kind, **leaves, pair=".cta_group::2", single=".cta_group::1")


_MOVE: dict[str, Any] = {"at": "taddr", "columns": _columns, "lanes": _lanes, "distance": _distance}
_FACTORS = "idesc enable a b-desc scale-a scale-b meta disabled"  # in the order in which TensorMemory::product reads them

ROWS: list[Row] = [
    *_tcgen05(
        "alloc",
        "tcgen05.alloc.cta_group.sync.aligned{.ss}.b32 [addr], columns",
        _of_group(TensorAllocRequest, columns="columns"),
        _of_group(TensorAlloc, at="addr", columns="columns"),
        touch="write addr ss 4",
    ),
    *_tcgen05(
        "dealloc",
        "tcgen05.dealloc.cta_group.sync.aligned.b32 taddr, columns",
        _of_group(TensorDealloc, columns="columns", cells="taddr"),
    ),
    *_tcgen05("relinquish_alloc_permit", "tcgen05.relinquish_alloc_permit.cta_group.sync.aligned", _of_group(TensorRelinquish)),
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
        makes(TensorLd, **_MOVE),
        completion="wait::ld",
    ),
    *_tcgen05(
        "st",
        """
        tcgen05.st.sync.aligned.shape1.num{.unpack::16b}.b32 [taddr], src
        tcgen05.st.sync.aligned.shape2.num{.unpack::16b}.b32 [taddr], half, src
        """,
        makes(TensorSt, **_MOVE),
        completion="wait::st",
    ),
    *_tcgen05("wait::ld", "tcgen05.wait::ld.sync.aligned", makes(TensorWait, what=1), completion="wait::ld"),
    *_tcgen05("wait::st", "tcgen05.wait::st.sync.aligned", makes(TensorWait, what=2), completion="wait::st"),
    *_tcgen05(
        "cp",
        "tcgen05.cp.cta_group.shape{.warps}{.b8x16.src_fmt} [taddr], desc",
        _of_group(TensorCp, at="taddr", operands="desc", rows=_rows, row_bytes=_copied(8), columns=_copied(32)),
        completion="mbarrier",
    ),
    *_tcgen05("shift", "tcgen05.shift.cta_group.down [taddr]", _of_group(TensorShift, at="taddr"), completion="mbarrier"),
    *_tcgen05("fence::before_thread_sync", "tcgen05.fence::before_thread_sync", makes(TensorFence)),
    *_tcgen05("fence::after_thread_sync", "tcgen05.fence::after_thread_sync", makes(TensorFence, after=1)),
    *_tcgen05(
        "commit",
        "tcgen05.commit.cta_group.mbarrier::arrive::one{.ss}{.multicast}.b64 [mbar]{, cta-mask}",
        _of_group(TensorCommit, at="mbar", ctas="cta-mask", multicast=".multicast::cluster"),
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
        _of_group(TensorMma, at="taddr", operands=_FACTORS, factors=_factors, form=_form, disabled=_disabled, collector=_collector),
        completion="mbarrier",
    ),
]
