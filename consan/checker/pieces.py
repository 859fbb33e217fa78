"""Synchronisation that a change may add: its events, and each in PTX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from consan.instrument.record.templates import Event, Flag, TemplateEvent

Piece = tuple[TemplateEvent, ...]
ALL_LANES, ALL_THREADS = 0xFFFFFFFF, -1
_CTA_SCOPE, _GPU_SCOPE = 0, 2 << 4
_WAITS = int(Flag.WAITS)

BARRIER: Final = (TemplateEvent(Event.BARRIER, _WAITS, b=ALL_THREADS),)
WARP_BARRIER: Final = (TemplateEvent(Event.WARP_BARRIER, _WAITS, a=ALL_LANES, b=ALL_THREADS),)
CLUSTER: Final = (TemplateEvent(Event.CLUSTER_ARRIVE), TemplateEvent(Event.CLUSTER_WAIT))
REGISTERS_FENCE: Final = (TemplateEvent(Event.PRODUCT_FENCE),)
PROXY_FENCE: Final = (TemplateEvent(Event.PROXY_FENCE, a=3),)
INITS_FENCE: Final = (TemplateEvent(Event.INITS_FENCE),)
COMMIT: Final = (TemplateEvent(Event.COPY_COMMIT),)
BULK_COMMIT: Final = (TemplateEvent(Event.BULK_COMMIT),)
PRODUCT_COMMIT: Final = (TemplateEvent(Event.PRODUCT_COMMIT),)
TENSOR_BEFORE: Final = (TemplateEvent(Event.TENSOR_FENCE, a=0),)
TENSOR_AFTER: Final = (TemplateEvent(Event.TENSOR_FENCE, a=1),)
TENSOR_LD: Final = (TemplateEvent(Event.TENSOR_WAIT, a=1),)
TENSOR_ST: Final = (TemplateEvent(Event.TENSOR_WAIT, a=2),)
GPU_FENCE: Final = (TemplateEvent(Event.FENCE, int(Flag.ACQUIRES | Flag.RELEASES), offset=_GPU_SCOPE | 7),)

CTA_FENCE: Final = (TemplateEvent(Event.FENCE, int(Flag.ACQUIRES | Flag.RELEASES | Flag.NARROW), offset=_CTA_SCOPE | 7),)


def copy_wait(pending: int) -> Piece:
    """A wait for all but the last groups of `cp.async`."""
    return (TemplateEvent(Event.COPY_WAIT, a=pending),)


def bulk_wait(pending: int, *, read: bool) -> Piece:
    """The same for bulk copies; `read`: only for their sources."""
    return (TemplateEvent(Event.BULK_WAIT, int(Flag.READ_ONLY) if read else 0, a=pending),)


def product_wait(pending: int) -> Piece:
    """The same for groups of `wgmma`."""
    return (TemplateEvent(Event.PRODUCT_WAIT, a=pending),)


def phase_wait(address: int, parity: int) -> Piece:
    """A wait for a phase of the mbarrier at a shared address."""
    return (TemplateEvent(Event.MBARRIER_WAIT, offset=address, a=parity),)


def arrival(address: int) -> Piece:
    """One more arrival at an mbarrier."""
    return (TemplateEvent(Event.MBARRIER_ARRIVE, offset=address, a=1),)


def invalidation(address: int) -> Piece:
    """The end of an mbarrier."""
    return (TemplateEvent(Event.MBARRIER_INVAL, offset=address),)


def _bulk_wait(event: TemplateEvent) -> str:
    return f"cp.async.bulk.wait_group{'.read' if event.flags & Flag.READ_ONLY else ''} {event.a}"


def _at_mbarrier(code: str) -> Callable[[TemplateEvent], str]:
    """Code at the address of an event: shared memory takes no immediate one."""
    return lambda event: f"{{ .reg .b32 at; .reg .pred complete; mov.u32 at, {event.offset}; {code.format(event=event)} }}"


_POLL = "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [at], {event.a}; @!complete bra again;"


_TEXTS: Final[dict[int, Callable[[TemplateEvent], str]]] = {
    Event.BARRIER: lambda event: f"bar.sync {event.a};" if event.b == ALL_THREADS else f"bar.sync {event.a}, {event.b};",
    Event.WARP_BARRIER: lambda event: f"bar.warp.sync {event.a:#x};",
    Event.CLUSTER_ARRIVE: lambda event: "barrier.cluster.arrive;",
    Event.CLUSTER_WAIT: lambda event: "barrier.cluster.wait;",
    Event.PROXY_FENCE: lambda event: "fence.proxy.async;",
    Event.INITS_FENCE: lambda event: "fence.mbarrier_init.release.cluster;",
    Event.FENCE: lambda event: "fence.acq_rel.cta;" if event.flags & Flag.NARROW else "fence.sc.gpu;",
    Event.COPY_COMMIT: lambda event: "cp.async.commit_group;",
    Event.COPY_WAIT: lambda event: f"cp.async.wait_group {event.a};",
    Event.BULK_COMMIT: lambda event: "cp.async.bulk.commit_group;",
    Event.BULK_WAIT: lambda event: f"{_bulk_wait(event)};",
    Event.PRODUCT_COMMIT: lambda event: "wgmma.commit_group.sync.aligned;",
    Event.PRODUCT_FENCE: lambda event: "wgmma.fence.sync.aligned;",
    Event.PRODUCT_WAIT: lambda event: f"wgmma.wait_group.sync.aligned {event.a};",
    Event.TENSOR_FENCE: lambda event: f"tcgen05.fence::{'after' if event.a else 'before'}_thread_sync;",
    Event.TENSOR_WAIT: lambda event: f"tcgen05.wait::{'ld' if event.a == 1 else 'st'}.sync.aligned;",
    Event.MBARRIER_WAIT: _at_mbarrier(_POLL),
    Event.MBARRIER_ARRIVE: _at_mbarrier("mbarrier.arrive.shared.b64 _, [at];"),
    Event.MBARRIER_INVAL: _at_mbarrier("mbarrier.inval.shared.b64 [at];"),
}


def ptx_of(event: TemplateEvent) -> str:
    """An added event as PTX. A wait for a phase is that of sm_90, where other CTAs may complete the phase."""
    return _TEXTS[event.kind](event)


def words_of(event: TemplateEvent) -> str:
    """The same for a report."""
    if event.kind == Event.MBARRIER_WAIT:
        return f"mbarrier.try_wait.parity with parity {event.a} on the mbarrier at shared address {event.offset:#x}"
    name = {Event.MBARRIER_ARRIVE: "mbarrier.arrive", Event.MBARRIER_INVAL: "mbarrier.inval"}.get(Event(event.kind))
    return f"{name} on the mbarrier at shared address {event.offset:#x}" if name else ptx_of(event).rstrip(";")
