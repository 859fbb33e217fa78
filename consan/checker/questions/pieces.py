"""Synchronisation that a change may add: its events, and each in PTX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from consan.instrument import effects

Piece = tuple[effects.Effect, ...]
ALL_LANES: Final = effects.WordValue(0xFFFFFFFF)
_CTA_SCOPE, _GPU_SCOPE = 0, 2 << 4

BARRIER: Final = (effects.CtaBarrier(waits=True),)
WARP_BARRIER: Final = (effects.WarpSync(mask=ALL_LANES),)
CLUSTER: Final = (effects.ClusterBarrierArrive(), effects.ClusterBarrierWait())
REGISTERS_FENCE: Final = (effects.ProductFence(),)
PROXY_FENCE: Final = (effects.ProxyFence(),)
INITS_FENCE: Final = (effects.InitsFence(),)
COMMIT: Final = (effects.CopyCommit(),)
BULK_COMMIT: Final = (effects.BulkCommit(),)
PRODUCT_COMMIT: Final = (effects.ProductCommit(),)
TENSOR_BEFORE: Final = (effects.TensorFence(after=0),)
TENSOR_AFTER: Final = (effects.TensorFence(after=1),)
TENSOR_LD: Final = (effects.TensorWait(what=1),)
TENSOR_ST: Final = (effects.TensorWait(what=2),)
GPU_FENCE: Final = (effects.Fence(acquires=True, releases=True, order=_GPU_SCOPE | 7),)
CTA_FENCE: Final = (effects.Fence(acquires=True, releases=True, narrow=True, order=_CTA_SCOPE | 7),)


def copy_wait(pending: int) -> Piece:
    """A wait for all but the last groups of `cp.async`."""
    return (effects.CopyWait(pending=effects.WordValue(pending)),)


def bulk_wait(pending: int, *, read: bool) -> Piece:
    """The same for bulk copies; `read`: only for their sources."""
    return (effects.BulkWait(pending=effects.WordValue(pending), read_only=read),)


def product_wait(pending: int) -> Piece:
    """The same for groups of `wgmma`."""
    return (effects.ProductWait(pending=effects.WordValue(pending)),)


def phase_wait(address: int, parity: int) -> Piece:
    """A wait for a phase of the mbarrier at a shared address."""
    return (effects.MbarrierWait(at=effects.WordValue(address), parity=effects.WordValue(parity)),)


def arrival(address: int) -> Piece:
    """One more arrival at an mbarrier."""
    return (effects.MbarrierArrive(at=effects.WordValue(address)),)


def invalidation(address: int) -> Piece:
    """The end of an mbarrier."""
    return (effects.MbarrierInval(at=effects.WordValue(address)),)


def _barrier(event: Any) -> str:
    counted = "" if event.threads == effects.ALL_THREADS else f", {event.threads.number}"
    return f"bar.sync {event.id.number}{counted};"


def _bulk_wait(event: Any) -> str:
    return f"cp.async.bulk.wait_group{'.read' if event.read_only else ''} {event.pending.number};"


def _at_mbarrier(code: str) -> Callable[[Any], str]:
    """Code at the address of an event: shared memory takes no immediate one."""
    return lambda event: f"{{ .reg .b32 at; .reg .pred complete; mov.u32 at, {event.at.number}; {code.format(event=event)} }}"


_POLL = "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [at], {event.parity.number}; @!complete bra again;"


_TEXTS: Final[dict[type[effects.Effect], Callable[[Any], str]]] = {
    effects.CtaBarrier: _barrier,
    effects.WarpSync: lambda event: f"bar.warp.sync {event.mask.number:#x};",
    effects.ClusterBarrierArrive: lambda event: "barrier.cluster.arrive;",
    effects.ClusterBarrierWait: lambda event: "barrier.cluster.wait;",
    effects.ProxyFence: lambda event: "fence.proxy.async;",
    effects.InitsFence: lambda event: "fence.mbarrier_init.release.cluster;",
    effects.Fence: lambda event: "fence.acq_rel.cta;" if event.narrow else "fence.sc.gpu;",
    effects.CopyCommit: lambda event: "cp.async.commit_group;",
    effects.CopyWait: lambda event: f"cp.async.wait_group {event.pending.number};",
    effects.BulkCommit: lambda event: "cp.async.bulk.commit_group;",
    effects.BulkWait: _bulk_wait,
    effects.ProductCommit: lambda event: "wgmma.commit_group.sync.aligned;",
    effects.ProductFence: lambda event: "wgmma.fence.sync.aligned;",
    effects.ProductWait: lambda event: f"wgmma.wait_group.sync.aligned {event.pending.number};",
    effects.TensorFence: lambda event: f"tcgen05.fence::{'after' if event.after else 'before'}_thread_sync;",
    effects.TensorWait: lambda event: f"tcgen05.wait::{'ld' if event.what == 1 else 'st'}.sync.aligned;",
    effects.MbarrierWait: _at_mbarrier(_POLL),
    effects.MbarrierArrive: _at_mbarrier("mbarrier.arrive.shared.b64 _, [at];"),
    effects.MbarrierInval: _at_mbarrier("mbarrier.inval.shared.b64 [at];"),
}


def ptx_of(event: effects.Effect) -> str:
    """An added event as PTX. A wait for a phase is that of sm_90, where other CTAs may complete the phase."""
    return _TEXTS[type(event)](event)


def words_of(event: effects.Effect) -> str:
    """The same for a report."""
    if isinstance(event, effects.MbarrierWait):
        return f"mbarrier.try_wait.parity with parity {event.parity.number} on the mbarrier at shared address {event.at.number:#x}"
    if isinstance(event, (effects.MbarrierArrive, effects.MbarrierInval)):
        name = "mbarrier.arrive" if isinstance(event, effects.MbarrierArrive) else "mbarrier.inval"
        return f"{name} on the mbarrier at shared address {event.at.number:#x}"
    return ptx_of(event).rstrip(";")
