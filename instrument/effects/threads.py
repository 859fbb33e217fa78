"""Effects of threads: accesses to shared and global memory, barriers, fences."""

from __future__ import annotations

from consan.dataclass import dataclass
from consan.instrument.effects.flags import MatrixRow
from consan.instrument.effects.model import (
    ALL_THREADS,
    LANES,
    NO_WORD,
    ZERO,
    Access,
    AtShared,
    Digest,
    Effect,
    InFlight,
    Loose,
    Number,
    When,
    Wide,
)


@dataclass(frozen=True, kw_only=True)
class SharedAccess(AtShared):
    """An access to shared memory: so many bytes, in elements of that size, by the first lanes of the warp. `row`: a MatrixRow."""

    access = "place"
    repeats = True
    bytes: int = 0
    element: int = 0
    lanes: int = LANES
    row: int = MatrixRow.NOBODY
    value: Digest = NO_WORD
    strong: bool = False
    unused: bool = False
    constant: bool = False
    uniform: bool = False
    data: bool = False
    again: bool = False


class Read(SharedAccess):
    """A load."""


class Write(SharedAccess):
    """A store."""


class Atomic(SharedAccess):
    """A read-modify-write."""


@dataclass(frozen=True, kw_only=True)
class Fill(AtShared):
    """`st.bulk`: a weak store of any size."""

    access = "place"
    repeats = True
    size: Number = ZERO


@dataclass(frozen=True, kw_only=True)
class GlobalAccess(Effect):
    """An access to global memory. `stores`: a bit for each weak store, of a load: those that its value goes into (record/uses.py)."""

    access = "place"
    repeats = True
    address: Wide = NO_WORD
    bytes: int = 0
    element: int = 0
    order: int = 0
    value: Loose = ZERO
    stores: int = 0
    strong: bool = False
    adds: bool = False
    nc: bool = False
    unused: bool = False
    data: bool = False
    again: bool = False
    releases: bool = False


class GlobalRead(GlobalAccess):
    """A load, where copies to global memory may meet it, or global memory is checked."""


class GlobalWrite(GlobalAccess):
    """A store or a read-modify-write, where copies from global memory may meet it, or global memory is checked."""


@dataclass(frozen=True, kw_only=True)
class StrongAccess(Effect):
    """A strong access, where threads may synchronise through memory: its words, what it does to the value, and what it orders.

    `operation`: a number of record/families/global_memory.py; `order`: one of record/text/orders.py. `polls`: in a loop that may wait for
    another thread. `looked_up`: its place follows from an index that the thread has loaded (record/analyses/looked_up.py).
    """

    places = True
    words: Access = NO_WORD
    bytes: int = 0
    element: int = 0
    operation: int = 0
    order: int = 0
    reads: bool = False
    writes: bool = False
    adds: bool = False
    unused: bool = False
    data: bool = False
    again: bool = False
    compared: bool = False
    polls: bool = False
    looked_up: bool = False


class Observe(StrongAccess):
    """Before the access itself."""

    recorded = When.CHECKED


class Publish(StrongAccess):
    """After it."""

    recorded = When.CHECKED_BEHIND


class GridWait(Effect):
    """`griddepcontrol.wait`, where global memory is checked."""

    recorded = When.CHECKED


class Unseen(Effect):
    """A strong access to memory that the log does not name, where global memory is checked."""

    recorded = When.CHECKED


@dataclass(frozen=True, kw_only=True)
class CtaBarrier(Effect):
    """A barrier of the CTA. `threads`: ALL_THREADS without a count; `call`: the number of a `__syncthreads()` of the source, or 0."""

    repeats = True
    id: Number = ZERO
    threads: Number = ALL_THREADS
    call: int = 0
    waits: bool = False
    seal: bool = False
    warpgroup: bool = False


@dataclass(frozen=True, kw_only=True)
class WarpSync(Effect):
    """`bar.warp.sync`, of the lanes of a mask."""

    repeats = True
    mask: Number = ZERO


@dataclass(frozen=True, kw_only=True)
class PointReached(Effect):
    """An instruction that lanes must reach together (functions/points.py). `key`: points with one mask and one key meet, which those of
    one instruction have if no point of all lanes lies between them.

    `shuffles`: lanes take values from each other there, or before the next point.
    """

    repeats = True
    members: Number = ZERO
    key: int = 0
    join: int = 0
    aligned: bool = False
    whole: bool = False
    masked: bool = False
    waits: bool = False
    shuffles: bool = False


@dataclass(frozen=True, kw_only=True)
class JoinPassed(Effect):
    """A place past some points: a bit for each; of a call, its function's number."""

    repeats = True
    passes: int = 0
    called: int = 0


@dataclass(frozen=True, kw_only=True)
class ClusterBarrierArrive(Effect):
    """`barrier.cluster.arrive`."""

    relaxed: bool = False


class ClusterBarrierWait(Effect):
    """`barrier.cluster.wait`."""


@dataclass(frozen=True, kw_only=True)
class Fence(Effect):
    """A fence, in modules with relaxed arrivals or waits, or whose threads may synchronise through memory.

    `restricted`: it orders accesses to shared memory only (record/restricted.py). `of_puts`: none, but the next one is NVSHMEM's
    (SEMANTICS 12, R-RK4). `own_puts`: none; a put that has its own signal begins with `of_puts`, and else ends.
    """

    recorded = When.FENCES
    places = True
    order: int = 0
    acquires: bool = False
    releases: bool = False
    narrow: bool = False
    restricted: bool = False
    of_puts: bool = False
    own_puts: bool = False


class InitsFence(Effect):
    """`fence.mbarrier_init`."""

    recorded = When.FENCES


@dataclass(frozen=True, kw_only=True)
class ProxyFence(InFlight):
    """A fence of the async proxy: bit 0 for shared, bit 1 for global memory; `narrow`: for shared memory of the own CTA."""

    repeats = True
    memories: int = 3
    narrow: bool = False


@dataclass(frozen=True, kw_only=True)
class MapFence(Effect):
    """`fence.proxy.tensormap`: a release, or an acquire for the map at an address."""

    map: Wide = NO_WORD
    acquires: bool = False
    releases: bool = False
