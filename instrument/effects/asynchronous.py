"""Copies and products in flight, their groups, and mbarriers."""

from __future__ import annotations

from consan.dataclass import dataclass
from consan.instrument.effects.model import NO_WORD, ONE, ZERO, AtShared, Effect, InFlight, Loose, Map, Number, Place, When, Wide


@dataclass(frozen=True, kw_only=True)
class CopyIssue(Effect):
    """A `cp.async` is issued: so many bytes are written, `reads` of them are read at the source. Without a source: it meets no access."""

    access = "place"
    repeats = True
    at: Place = ZERO
    bytes: int = 0
    source: Wide = NO_WORD
    reads: Loose = ZERO


class CopyCommit(Effect):
    """`cp.async.commit_group`."""

    repeats = True


@dataclass(frozen=True, kw_only=True)
class GroupWait(Effect):
    """A wait for all but the last groups of a thread."""

    repeats = True
    pending: Number = ZERO


class CopyWait(GroupWait):
    """`cp.async.wait_group`."""


@dataclass(frozen=True, kw_only=True)
class MbarrierEffect(AtShared):
    """An operation on an mbarrier."""

    mbarrier = True


@dataclass(frozen=True, kw_only=True)
class MbarrierInit(MbarrierEffect):
    """`mbarrier.init`."""

    count: Number = ZERO


class MbarrierInval(MbarrierEffect):
    """`mbarrier.inval`."""


@dataclass(frozen=True, kw_only=True)
class MbarrierArrive(MbarrierEffect):
    """Arrivals, and the bytes announced with them. `source`: the number of the place in the source, which copies in a loop share."""

    places = True
    count: Number = ONE
    expected: Number = ZERO
    drop: bool = False
    no_complete: bool = False
    relaxed: bool = False
    source: int = 0


@dataclass(frozen=True, kw_only=True)
class MbarrierTransaction(MbarrierEffect):
    """`expect_tx` or, with `complete`, `complete_tx`."""

    size: Number = ZERO
    complete: bool = False


@dataclass(frozen=True, kw_only=True)
class MbarrierWait(MbarrierEffect):
    """A wait that has returned true. `unused`: nothing depends on its result."""

    recorded = When.BEHIND
    places = True
    parity: Number = ZERO
    relaxed: bool = False
    unused: bool = False


@dataclass(frozen=True, kw_only=True)
class MbarrierCopies(MbarrierEffect):
    """`cp.async.mbarrier.arrive`."""

    places = True
    noinc: bool = False


@dataclass(frozen=True, kw_only=True)
class ToShared(InFlight, AtShared):
    """A copy into shared memory that completes at an mbarrier. `ctas`: the mask of a multicast, whose mbarrier may be one of each pair."""

    access = "place"
    mbarrier_at: Number = ZERO
    ctas: Number = ZERO
    multicast: bool = False
    pair: bool = False


@dataclass(frozen=True, kw_only=True)
class BulkLoad(ToShared):
    """A bulk copy from global to shared memory."""

    size: Number = ZERO
    source: Wide = NO_WORD


@dataclass(frozen=True, kw_only=True)
class TensorLoad(ToShared):
    """A tensor copy from global to shared memory. `rank`: the number of dimensions."""

    tensor: Map = NO_WORD
    rank: int = 0
    four_rows: bool = False
    map: bool = False


@dataclass(frozen=True, kw_only=True)
class LaunchRequest(ToShared):
    """`clusterlaunchcontrol.try_cancel`."""


@dataclass(frozen=True, kw_only=True)
class BulkStore(InFlight, AtShared):
    """A bulk copy from shared memory, or a reduction of elements. `chosen`: bits for bytes of each 16."""

    access = "place"
    size: Number = ZERO
    chosen: Number = ZERO
    target: Wide = NO_WORD
    element: int = 0
    adds: bool = False
    masked: bool = False


@dataclass(frozen=True, kw_only=True)
class TensorStore(InFlight, AtShared):
    """A tensor copy from shared memory, or a reduction."""

    access = "place"
    tensor: Map = NO_WORD
    rank: int = 0
    adds: bool = False
    four_rows: bool = False
    map: bool = False


@dataclass(frozen=True, kw_only=True)
class BulkPush(InFlight, AtShared):
    """A bulk copy from shared memory to that of a CTA of the cluster, or a reduction of elements."""

    access = "place"
    size: Number = ZERO
    mbarrier_at: Number = ZERO
    source: Number = ZERO
    element: int = 0
    adds: bool = False


@dataclass(frozen=True, kw_only=True)
class StoreAsync(InFlight, AtShared):
    """`st.async` or, strong, `red.async`."""

    access = "place"
    mbarrier_at: Number = ZERO
    bytes: int = 0
    element: int = 0
    strong: bool = False


class BulkCommit(InFlight):
    """`cp.async.bulk.commit_group`."""


@dataclass(frozen=True, kw_only=True)
class BulkWait(GroupWait, InFlight):
    """`cp.async.bulk.wait_group`."""

    repeats = False
    read_only: bool = False


@dataclass(frozen=True, kw_only=True)
class LaunchAnswer(Effect):
    """A response has been decoded. `cancelled`: 1 if it names a cluster; `query`: its number if it is one for the id, or 0."""

    recorded = When.BEHIND
    cancelled: Number = ZERO
    query: int = 0


@dataclass(frozen=True, kw_only=True)
class LaunchUse(Effect):
    """The id of a query is used."""

    query: int = 0


@dataclass(frozen=True, kw_only=True)
class ProductOperand(InFlight):
    """An operand of `wgmma.mma_async` in shared memory: the halves of its descriptor, its rows and its depth in bytes."""

    access = "read"
    repeats = True
    low: Number = ZERO
    high: Number = ZERO
    rows: int = 0
    depth: int = 0
    major: bool = False
    own_rows: bool = False


class ProductCommit(InFlight):
    """`wgmma.commit_group`."""

    repeats = True


class ProductWait(GroupWait, InFlight):
    """`wgmma.wait_group`."""


class ProductFence(Effect):
    """`wgmma.fence`: it orders registers, which no log holds; only in changes of a text."""

    recorded = When.NEVER
