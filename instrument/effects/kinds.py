"""All kinds of effects. The number of a kind is its place in EFFECTS, from 1 on."""

from __future__ import annotations

from typing import Final

from consan.instrument.effects.asynchronous import (
    BulkCommit as BulkCommit,
    BulkLoad as BulkLoad,
    BulkPush as BulkPush,
    BulkStore as BulkStore,
    BulkWait as BulkWait,
    CopyCommit as CopyCommit,
    CopyIssue as CopyIssue,
    CopyWait as CopyWait,
    GroupWait as GroupWait,
    LaunchAnswer as LaunchAnswer,
    LaunchRequest as LaunchRequest,
    LaunchUse as LaunchUse,
    MbarrierArrive as MbarrierArrive,
    MbarrierCopies as MbarrierCopies,
    MbarrierEffect as MbarrierEffect,
    MbarrierInit as MbarrierInit,
    MbarrierInval as MbarrierInval,
    MbarrierTransaction as MbarrierTransaction,
    MbarrierWait as MbarrierWait,
    ProductCommit as ProductCommit,
    ProductFence as ProductFence,
    ProductOperand as ProductOperand,
    ProductWait as ProductWait,
    StoreAsync as StoreAsync,
    TensorLoad as TensorLoad,
    TensorStore as TensorStore,
    ToShared as ToShared,
)
from consan.instrument.effects.model import Effect
from consan.instrument.effects.tensor_memory import (
    TensorAlloc as TensorAlloc,
    TensorAllocRequest as TensorAllocRequest,
    TensorCommit as TensorCommit,
    TensorCp as TensorCp,
    TensorDealloc as TensorDealloc,
    TensorFence as TensorFence,
    TensorLd as TensorLd,
    TensorMemoryEffect as TensorMemoryEffect,
    TensorMma as TensorMma,
    TensorMove as TensorMove,
    TensorRelinquish as TensorRelinquish,
    TensorShift as TensorShift,
    TensorSt as TensorSt,
    TensorWait as TensorWait,
)
from consan.instrument.effects.threads import (
    Atomic as Atomic,
    ClusterBarrierArrive as ClusterBarrierArrive,
    ClusterBarrierWait as ClusterBarrierWait,
    CtaBarrier as CtaBarrier,
    Fence as Fence,
    Fill as Fill,
    GlobalAccess as GlobalAccess,
    GlobalRead as GlobalRead,
    GlobalWrite as GlobalWrite,
    GridWait as GridWait,
    InitsFence as InitsFence,
    JoinPassed as JoinPassed,
    MapFence as MapFence,
    Observe as Observe,
    PointReached as PointReached,
    ProxyFence as ProxyFence,
    Publish as Publish,
    Read as Read,
    SharedAccess as SharedAccess,
    StrongAccess as StrongAccess,
    Unseen as Unseen,
    WarpSync as WarpSync,
    Write as Write,
)

EFFECTS: Final[tuple[type[Effect], ...]] = (
    *(Read, Write, Atomic, Fill, GlobalRead, GlobalWrite, Observe, Publish, GridWait, Unseen),
    *(CtaBarrier, WarpSync, PointReached, JoinPassed, ClusterBarrierArrive, ClusterBarrierWait, Fence, InitsFence, ProxyFence, MapFence),
    *(CopyIssue, CopyCommit, CopyWait),
    *(MbarrierInit, MbarrierInval, MbarrierArrive, MbarrierTransaction, MbarrierWait, MbarrierCopies),
    *(BulkLoad, TensorLoad, LaunchRequest, BulkStore, TensorStore, BulkPush, StoreAsync, BulkCommit, BulkWait, LaunchAnswer, LaunchUse),
    *(ProductOperand, ProductCommit, ProductWait, ProductFence),
    *(TensorAllocRequest, TensorAlloc, TensorDealloc, TensorRelinquish, TensorLd, TensorSt, TensorWait),
    *(TensorMma, TensorCp, TensorShift, TensorCommit, TensorFence),
)
for _number, _effect in enumerate(EFFECTS, 1):
    _effect.number = _number
