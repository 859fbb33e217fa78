"""The recording of bulk and tensor copies, their groups, st.async, red.async, st.bulk, and proxy fences (ISA "cp.async.bulk",
"cp.async.bulk.tensor", "st.async", "st.bulk", "fence.proxy").

A copy may reach other CTAs of the cluster: by its address, by a mask, or from this CTA's shared memory. Not taken: tensor copies in
mode im2col::w.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from consan.instrument.effects import Effect
from consan.instrument.effects.kinds import (
    BulkLoad,
    BulkPush,
    BulkStore,
    Fill,
    ProxyFence,
    StoreAsync,
    TensorLoad,
    TensorStore,
)
from consan.instrument.isa import MemoryAccess
from consan.instrument.passes.context import FunctionPlan, Work, operand_of
from consan.instrument.passes.emit import Unsupported
from consan.instrument.record import clusters, lowering, tensormaps, tensors
from consan.instrument.record.lowering import At, Touch, at
from consan.instrument.record.orders import reach_of

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

FAMILIES = frozenset({"bulk", "tensor", "proxy-fence"})
_COPIES = (
    *("cp.async.bulk", "cp.reduce.async.bulk", "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor"),
    *("multimem.cp.async.bulk", "multimem.cp.reduce.async.bulk"),
)
_GROUPS = ("cp.async.bulk.commit_group", "cp.async.bulk.wait_group")
_ELEMENTS = {"f16": 2, "bf16": 2, "f32": 4, "s32": 4, "u32": 4, "b32": 4, "f64": 8, "s64": 8, "u64": 8, "b64": 8}  # bytes, of reductions
_SHARED, _GLOBAL = 1, 2  # memories of a proxy fence
_FENCES = {
    ("async",): _SHARED | _GLOBAL,
    ("async", "global"): _GLOBAL,
    ("async", "shared::cta"): _SHARED,
    ("async", "shared::cluster"): _SHARED,
}


def refused(work: Work) -> bool:
    """Whether an operation of these families is one that is not taken."""
    if work.row.family == "proxy-fence":
        return not _memories(work) and not tensormaps.is_fence(work)
    if work.row.name in _BY_NAME:
        return False
    return work.row.name not in _COPIES or not (_is_load(work) or _is_store(work) or _is_push(work))


def _is_load(work: Work) -> bool:
    return _sides(work) == {("global", "read"), ("shared", "write")} and tensors.is_taken(work)


def _is_store(work: Work) -> bool:
    return _sides(work) in ({("shared", "read"), ("global", "write")}, {("shared", "read"), ("global", "rmw")}) and tensors.is_taken(work)


def _is_push(work: Work) -> bool:
    return _sides(work) in ({("shared", "read"), ("shared", "write")}, {("shared", "read"), ("shared", "rmw")})


def _sides(work: Work) -> set[tuple[str, str]]:
    return {(side.space, side.access) for side in work.event.accesses if side.address is not operand_of(work, "mbar")}


def reads_global(plan: FunctionPlan) -> bool:
    """Whether a function has copies from global memory."""
    return any(work.row.name in _COPIES and _is_load(work) for work in plan.work)


def results(plan: FunctionPlan) -> bool:
    """Whether a function has copies to global memory."""
    return any(work.row.name in _COPIES and _is_store(work) for work in plan.work)


def add(kernel: KernelRewrite, work: Work) -> None:
    """An operation of the families bulk and tensor."""
    _BY_NAME.get(work.row.name, _add_push if _is_push(work) else _add_copy)(kernel, work)


def _add_copy(kernel: KernelRewrite, work: Work) -> None:
    loads = _is_load(work)
    shared, outer = _side(work, "shared"), _side(work, "global")
    given: dict[str, Any] = {"at": at(shared, "shared"), **reach_of(work, shared)}
    if loads:
        given |= {"mbarrier_at": _mbarrier(work)}
        if (mask := operand_of(work, "cta-mask")) is not None:
            given |= {"multicast": True, "pair": "cta_group::2" in work.words, "ctas": mask}
    else:
        given["adds"] = outer.access == "rmw"
    if operand_of(work, "tensor") is not None:
        kind: type[Effect] = TensorLoad if loads else TensorStore
        of_tensor = {"four_rows": tensors.takes_rows(work), "map": tensors.map_in_memory(kernel, work)}
        given |= {"rank": tensors.rank_of(work), "tensor": functools.partial(tensors.add_words, kernel, work), **of_tensor}
    else:
        kind = BulkLoad if loads else BulkStore
        given |= {"size": operand_of(work, "size"), "source" if loads else "target": outer.address}
        given |= {} if loads else _of_store(work, outer)
    kernel.record(work, kind, (shared.access, "shared", 0), **given)


def _of_store(work: Work, outer: MemoryAccess) -> dict[str, Any]:
    """The element of a reduction, and a mask of bytes."""
    chosen = operand_of(work, "byte-mask")
    masked = {} if chosen is None else {"masked": True, "chosen": chosen}
    return {"element": _ELEMENTS[work.words[-1]] if outer.access == "rmw" else 0, **masked}


def _add_store(kernel: KernelRewrite, work: Work) -> None:
    """st.async or red.async, by one thread."""
    side = _side(work, "shared")
    if not side.total_bytes:
        raise Unsupported(work.instruction.opcode)
    size: dict[str, Any] = {"bytes": side.total_bytes, "element": side.width_bytes, "strong": side.access == "rmw"}
    kernel.record(work, StoreAsync, _touch(side), at=_at(work, side), mbarrier_at=_mbarrier(work), **size, **reach_of(work, side))


def _add_fill(kernel: KernelRewrite, work: Work) -> None:
    """st.bulk: a weak store of the thread, of any size."""
    side = next(access for access in work.event.accesses if access.access == "write")
    kernel.record(work, Fill, _touch(side), at=_at(work, side), size=operand_of(work, "size"), **reach_of(work, side))


def _add_push(kernel: KernelRewrite, work: Work) -> None:
    """A copy from shared memory to that of a CTA of the cluster, or a reduction of elements."""
    to, source = _to_shared(work), next(side for side in work.event.accesses if side.access == "read")
    adds = to.access == "rmw"
    kernel.record(
        work, BulkPush, _touch(to),
        at=_at(work, to), size=operand_of(work, "size"), mbarrier_at=_mbarrier(work), source=_at(work, source),
        adds=adds, element=_ELEMENTS[work.words[-1]] if adds else 0, **reach_of(work, to),
    )  # fmt: skip


def _touch(side: MemoryAccess) -> Touch:
    return side.access, "shared", side.total_bytes


def _to_shared(work: Work) -> MemoryAccess:
    return next(side for side in work.event.accesses if side.access in ("write", "rmw") and side.address is not operand_of(work, "mbar"))


def _at(work: Work, side: MemoryAccess) -> At:
    """An address in shared memory."""
    return at(side, side.space if any(word.startswith("shared") for word in work.words) else "generic")


def _side(work: Work, space: str) -> MemoryAccess:
    return next(side for side in work.event.accesses if side.space == space and side.address is not operand_of(work, "mbar"))


def _mbarrier(work: Work) -> At:
    """The mbarrier of a copy."""
    return _at(work, next(side for side in work.event.accesses if side.address is operand_of(work, "mbar")))


def _memories(work: Work) -> int:
    """The memories whose accesses a proxy fence orders. One of a direction, .async::generic, is taken for one of both."""
    return _FENCES.get(work.words, _SHARED if "async::generic" in work.words else 0)


def add_fence(kernel: KernelRewrite, work: Work) -> None:
    """A proxy fence. One with a release or an acquire (.async::generic) is a fence of the thread, too."""
    if tensormaps.is_fence(work):
        tensormaps.add_fence(kernel, work)
    elif memories := _memories(work):
        if "acquire" in work.words:
            clusters.add(kernel, work)
        kernel.record(work, ProxyFence, memories=memories, narrow="shared::cta" in work.words)
        if "release" in work.words:
            clusters.add(kernel, work)


_BY_NAME = dict.fromkeys(_GROUPS, lowering.add) | {"st.async": _add_store, "red.async": _add_store, "st.bulk": _add_fill}
HANDLERS = {"bulk": add, "tensor": add, "proxy-fence": add_fence}
