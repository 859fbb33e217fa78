"""All kinds of effects. The number of a kind is its place in EFFECTS, from 1 on."""

from __future__ import annotations

from typing import Final

from consan.instrument.effects.asynchronous import (
    BulkCommit as BulkCommit,
)
from consan.instrument.effects.asynchronous import (
    BulkLoad as BulkLoad,
)
from consan.instrument.effects.asynchronous import (
    BulkPush as BulkPush,
)
from consan.instrument.effects.asynchronous import (
    BulkStore as BulkStore,
)
from consan.instrument.effects.asynchronous import (
    BulkWait as BulkWait,
)
from consan.instrument.effects.asynchronous import (
    CopyCommit as CopyCommit,
)
from consan.instrument.effects.asynchronous import (
    CopyIssue as CopyIssue,
)
from consan.instrument.effects.asynchronous import (
    CopyWait as CopyWait,
)
from consan.instrument.effects.asynchronous import (
    GroupWait as GroupWait,
)
from consan.instrument.effects.asynchronous import (
    LaunchAnswer as LaunchAnswer,
)
from consan.instrument.effects.asynchronous import (
    LaunchRequest as LaunchRequest,
)
from consan.instrument.effects.asynchronous import (
    LaunchUse as LaunchUse,
)
from consan.instrument.effects.asynchronous import (
    MbarrierArrive as MbarrierArrive,
)
from consan.instrument.effects.asynchronous import (
    MbarrierCopies as MbarrierCopies,
)
from consan.instrument.effects.asynchronous import (
    MbarrierEffect as MbarrierEffect,
)
from consan.instrument.effects.asynchronous import (
    MbarrierInit as MbarrierInit,
)
from consan.instrument.effects.asynchronous import (
    MbarrierInval as MbarrierInval,
)
from consan.instrument.effects.asynchronous import (
    MbarrierTransaction as MbarrierTransaction,
)
from consan.instrument.effects.asynchronous import (
    MbarrierWait as MbarrierWait,
)
from consan.instrument.effects.asynchronous import (
    ProductCommit as ProductCommit,
)
from consan.instrument.effects.asynchronous import (
    ProductFence as ProductFence,
)
from consan.instrument.effects.asynchronous import (
    ProductOperand as ProductOperand,
)
from consan.instrument.effects.asynchronous import (
    ProductWait as ProductWait,
)
from consan.instrument.effects.asynchronous import (
    StoreAsync as StoreAsync,
)
from consan.instrument.effects.asynchronous import (
    TensorLoad as TensorLoad,
)
from consan.instrument.effects.asynchronous import (
    TensorStore as TensorStore,
)
from consan.instrument.effects.asynchronous import (
    ToShared as ToShared,
)
from consan.instrument.effects.model import Effect
from consan.instrument.effects.tensor_memory import (
    TensorAlloc as TensorAlloc,
)
from consan.instrument.effects.tensor_memory import (
    TensorAllocRequest as TensorAllocRequest,
)
from consan.instrument.effects.tensor_memory import (
    TensorCommit as TensorCommit,
)
from consan.instrument.effects.tensor_memory import (
    TensorCp as TensorCp,
)
from consan.instrument.effects.tensor_memory import (
    TensorDealloc as TensorDealloc,
)
from consan.instrument.effects.tensor_memory import (
    TensorFence as TensorFence,
)
from consan.instrument.effects.tensor_memory import (
    TensorLd as TensorLd,
)
from consan.instrument.effects.tensor_memory import (
    TensorMemoryEffect as TensorMemoryEffect,
)
from consan.instrument.effects.tensor_memory import (
    TensorMma as TensorMma,
)
from consan.instrument.effects.tensor_memory import (
    TensorMove as TensorMove,
)
from consan.instrument.effects.tensor_memory import (
    TensorRelinquish as TensorRelinquish,
)
from consan.instrument.effects.tensor_memory import (
    TensorShift as TensorShift,
)
from consan.instrument.effects.tensor_memory import (
    TensorSt as TensorSt,
)
from consan.instrument.effects.tensor_memory import (
    TensorWait as TensorWait,
)
from consan.instrument.effects.threads import (
    Atomic as Atomic,
)
from consan.instrument.effects.threads import (
    ClusterBarrierArrive as ClusterBarrierArrive,
)
from consan.instrument.effects.threads import (
    ClusterBarrierWait as ClusterBarrierWait,
)
from consan.instrument.effects.threads import (
    CtaBarrier as CtaBarrier,
)
from consan.instrument.effects.threads import (
    Fence as Fence,
)
from consan.instrument.effects.threads import (
    Fill as Fill,
)
from consan.instrument.effects.threads import (
    GlobalAccess as GlobalAccess,
)
from consan.instrument.effects.threads import (
    GlobalRead as GlobalRead,
)
from consan.instrument.effects.threads import (
    GlobalWrite as GlobalWrite,
)
from consan.instrument.effects.threads import (
    GridWait as GridWait,
)
from consan.instrument.effects.threads import (
    InitsFence as InitsFence,
)
from consan.instrument.effects.threads import (
    JoinPassed as JoinPassed,
)
from consan.instrument.effects.threads import (
    MapFence as MapFence,
)
from consan.instrument.effects.threads import (
    Observe as Observe,
)
from consan.instrument.effects.threads import (
    PointReached as PointReached,
)
from consan.instrument.effects.threads import (
    ProxyFence as ProxyFence,
)
from consan.instrument.effects.threads import (
    Publish as Publish,
)
from consan.instrument.effects.threads import (
    Read as Read,
)
from consan.instrument.effects.threads import (
    SharedAccess as SharedAccess,
)
from consan.instrument.effects.threads import (
    StrongAccess as StrongAccess,
)
from consan.instrument.effects.threads import (
    Unseen as Unseen,
)
from consan.instrument.effects.threads import (
    WarpSync as WarpSync,
)
from consan.instrument.effects.threads import (
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
