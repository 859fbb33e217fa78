"""Rows of the bulk and tensor copies: PTX ISA 9.7.9.25 (cp.async.bulk), 9.7.9.26 and 9.7.9.27 (multimem, tensor copies).

The prefetches into L2 touch nothing. Which memory a multimem address names is not known (8.2.3). The roles are complete: both sides of the
copy, the mbarrier whose tx-count signals completion, the sizes and masks. The size of a tensor copy comes from its tensor map at run time,
so the row does not contain it. Proxy: async for the data, generic for the mbarrier operand ("Async proxy").
"""

from __future__ import annotations

from typing import Any

from consan.instrument.effects import BulkCommit, BulkLoad, BulkPush, BulkStore, BulkWait, TensorLoad, TensorStore
from consan.instrument.effects.makes import makes
from consan.instrument.isa.classes import type_bytes
from consan.instrument.isa.model import Row
from consan.instrument.isa.rows.build import rows

__all__ = ["ROWS"]

_MOVE = "Data Movement and Conversion Instructions: "
_COMPLETE_TX = "mbarrier::complete_tx::bytes"
_LOAD_MODES = "tile tile::gather4 im2col im2col::w im2col::w::128"
_CLASSES = {
    "load_mode": _LOAD_MODES,
    "store_mode": "tile tile::scatter4 im2col_no_offs",
    "reduce_mode": "tile im2col_no_offs",
    "redOp": "and or xor add inc dec min max",
    "type": "f16 bf16 b32 u32 s32 b64 u64 s64 f32 f64",
    "half": "f16 bf16",
    "dst": "shared::cta shared::cluster",
    "complete_tx": _COMPLETE_TX,
}
_IN = "read src-addr global size async; write dst-addr dst size async; rmw mbar dst 8"
_OUT = "read src-addr shared::cta size async; write dst-addr global size async"
_REDUCE_OUT = "read src-addr shared::cta size async; rmw dst-addr global size async"
# An mbarrier in another CTA of a pair may serve a copy that is no multicast, too: its address says which.
_CTAS: dict[str, Any] = {"ctas": "cta-mask", "multicast": ".multicast::cluster", "pair": ".multicast::cluster.cta_group::2"}
_SUMS: dict[str, Any] = {"adds": True, "element": type_bytes}
_PUSH: dict[str, Any] = {"at": "dst-addr", "size": "size", "mbarrier_at": "mbar", "source": "src-addr"}
_STORE: dict[str, Any] = {"at": "src-addr", "size": "size", "target": "dst-addr"}


def _copies(name: str, block: str, **columns: Any) -> list[Row]:
    return rows(_MOVE + name, "bulk", block, name=name, classes=_CLASSES, **{"status": "checked", **columns})


def _tensor(name: str, block: str, **columns: Any) -> list[Row]:
    return rows(_MOVE + name, "tensor", block, name=name, classes=_CLASSES, **{"status": "checked", **columns})


BULK: list[Row] = [
    *_copies(
        "cp.async.bulk",
        """
        cp.async.bulk.dst.global.complete_tx{.multicast}{.level::cache_hint} [dst-addr], [src-addr], size, [mbar]{, cta-mask}{, policy}
        """,
        touch=_IN,
        completion="mbarrier",
        makes=makes(BulkLoad, at="dst-addr", mbarrier_at="mbar", **_CTAS, size="size", source="src-addr"),
    ),
    *_copies(  # PTX 9.2: what lies outside is not read, and so many bytes of the destination are indeterminate
        "cp.async.bulk",
        """
        cp.async.bulk.shared::cta.global.complete_tx{.level::cache_hint}.ignore_oob \
        [dst-addr], [src-addr], size, ignored-left, ignored-right, [mbar]{, policy}
        """,
        status="recorded",
        touch="read src-addr global size async; write dst-addr shared::cta size async; rmw mbar shared::cta 8",
        completion="mbarrier",
        makes=makes(BulkLoad, at="dst-addr", mbarrier_at="mbar", size="size", source="src-addr"),
    ),
    *_copies(
        "cp.async.bulk",
        "cp.async.bulk.shared::cluster.shared::cta.complete_tx [dst-addr], [src-addr], size, [mbar]",
        touch="read src-addr shared::cta size async; write dst-addr shared::cluster size async; rmw mbar shared::cluster 8",
        completion="mbarrier",
        makes=makes(BulkPush, **_PUSH),
    ),
    *_copies(
        "cp.async.bulk",
        """
        cp.async.bulk.global.shared::cta.bulk_group{.level::cache_hint}{.cp_mask} [dst-addr], [src-addr], size{, policy}{, byte-mask}
        """,
        touch=_OUT,
        completion="bulk-group",
        makes=makes(BulkStore, **_STORE, chosen="byte-mask", masked=".cp_mask"),
    ),
    *_copies(
        "cp.reduce.async.bulk",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.complete_tx.redOp.type [dst-addr], [src-addr], size, [mbar]",
        touch="read src-addr shared::cta size async; rmw dst-addr shared::cluster size async; rmw mbar shared::cluster 8",
        completion="mbarrier",
        makes=makes(BulkPush, **_PUSH, **_SUMS),
    ),
    *_copies(
        "cp.reduce.async.bulk",
        """
        cp.reduce.async.bulk.global.shared::cta.bulk_group{.level::cache_hint}.redOp.type [dst-addr], [src-addr], size{, policy}
        cp.reduce.async.bulk.global.shared::cta.bulk_group{.level::cache_hint}.add.noftz.half [dst-addr], [src-addr], size{, policy}
        """,
        touch=_REDUCE_OUT,
        completion="bulk-group",
        makes=makes(BulkStore, **_STORE, **_SUMS),
    ),
    *_copies(
        "cp.async.bulk.prefetch",
        "cp.async.bulk.prefetch.L2.global{.level::cache_hint} [addr], size{, policy}",
        status="neutral",
    ),
    *_copies("cp.async.bulk.commit_group", "cp.async.bulk.commit_group", completion="bulk-group", makes=makes(BulkCommit)),
    *_copies(
        "cp.async.bulk.wait_group",
        "cp.async.bulk.wait_group{.read} group-count",
        completion="bulk-group",
        makes=makes(BulkWait, pending="group-count", read_only=".read"),
    ),
    *_copies(
        "multimem.cp.async.bulk",
        "multimem.cp.async.bulk.global.shared::cta.bulk_group{.cp_mask} [dst-addr], [src-addr], size{, byte-mask}",
        touch=_OUT,
        completion="bulk-group",
        status="in part",
        makes=makes(BulkStore, **_STORE, chosen="byte-mask", masked=".cp_mask"),
    ),
    *_copies(
        "multimem.cp.reduce.async.bulk",
        """
        multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.redOp.type [dst-addr], [src-addr], size
        multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.half [dst-addr], [src-addr], size
        """,
        touch=_REDUCE_OUT,
        completion="bulk-group",
        status="in part",
        makes=makes(BulkStore, **_STORE, **_SUMS),
    ),
]

_TENSOR: dict[str, Any] = {"tensor": "tensor", "rank": lambda modifiers, operands: int(modifiers["dim"][0])}
_TENSOR_LOAD = makes(TensorLoad, at="dst-addr", mbarrier_at="mbar", **_CTAS, four_rows=".tile::gather4", **_TENSOR)


def _tensor_loads(mode: str, modes: str, **columns: Any) -> list[Row]:
    """Copies of tensors to shared memory. With .cta_group::2 the mbarrier may be that of the peer of the CTA of the destination."""
    return rows(
        _MOVE + "cp.async.bulk.tensor",
        "tensor",
        f"cp.async.bulk.tensor.dim.dst.global{mode}.complete_tx{{.multicast}}{{.cta_group}}{{.level::cache_hint}} "
        "[dst-addr], [tensor], [mbar]{, im2col}{, cta-mask}{, policy}",
        name="cp.async.bulk.tensor",
        touch="read tensor global 0 async; write dst-addr dst 0 async; rmw mbar dst-or-peer 8",
        completion="mbarrier",
        classes={**_CLASSES, "load_mode": modes},
        **{"status": "checked", **columns},
    )


TENSOR: list[Row] = [
    *_tensor_loads("{.load_mode}", "tile tile::gather4 im2col", makes=_TENSOR_LOAD),
    # The bits of their maps, and where pixels behind the end of a row lie, are in no text.
    *_tensor_loads(".load_mode", "im2col::w im2col::w::128", status="not modelled"),
    *_tensor(
        "cp.async.bulk.tensor",
        "cp.async.bulk.tensor.dim.global.shared::cta{.store_mode}.bulk_group{.level::cache_hint} [tensor], [src-addr]{, policy}",
        touch="read src-addr shared::cta 0 async; write tensor global 0 async",
        completion="bulk-group",
        makes=makes(TensorStore, at="src-addr", four_rows=".tile::scatter4", **_TENSOR),
    ),
    *_tensor(
        "cp.reduce.async.bulk.tensor",
        "cp.reduce.async.bulk.tensor.dim.global.shared::cta.redOp{.reduce_mode}.bulk_group{.level::cache_hint} "
        "[tensor], [src-addr]{, policy}",
        touch="read src-addr shared::cta 0 async; rmw tensor global 0 async",
        completion="bulk-group",
        makes=makes(TensorStore, at="src-addr", adds=True, **_TENSOR),
    ),
    *_tensor(
        "cp.async.bulk.prefetch.tensor",
        "cp.async.bulk.prefetch.tensor.dim.L2.global{.load_mode}{.level::cache_hint} [tensor]{, im2col}{, policy}",
        status="neutral",
    ),
]

ROWS: list[Row] = [*BULK, *TENSOR]
