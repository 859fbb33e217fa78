"""Findings as both engines make them, before they have words: what happened, where, and how often."""

from __future__ import annotations

import enum
from typing import Final

from consan.dataclass import dataclass

Dim3 = tuple[int, int, int]


class Kind(enum.IntEnum):
    """The tags."""

    DATA_RACE = 1
    MISSING_WAIT = 2
    UNINITIALIZED_READ = 3
    OUT_OF_BOUNDS = 4
    READ_EXPLAINED = 5  # bookkeeping: the unordered write of an uninitialised read came later (folded into the race)
    BARRIER_MISUSE = 6
    MISSING_PROXY_FENCE = 7
    LIFETIME = 8
    DEADLOCK = 9
    WAITER = 10  # bookkeeping: another waiter of a deadlock
    SCOPE = 11
    DIVERGENCE = 12
    GLOBAL_RACE = 16
    TENSOR_MISUSE = 20
    MISSING_TENSOR_FENCE = 21
    LAUNCH_MISUSE = 22
    MISSING_ORDER = 23  # between strong accesses, which are no race
    LANES_GONE = 24  # bookkeeping: at a shuffle some lanes of the warp have exited, or do not exist


class Hazard(enum.IntEnum):
    """Order in which the two conflicting accesses were observed."""

    NONE = 0
    RAW = 1
    WAR = 2
    WAW = 3


@enum.unique
class Reason(enum.IntEnum):
    """The missing edge, or the misuse. It names a situation of the catalogue, which has the words of `missing` and `fix`."""

    NONE = 0
    NO_BARRIER = 1
    NO_WARP_SYNC = 2
    NOT_COMMITTED = 3
    NOT_WAITED = 4
    WAITED_NO_BARRIER = 5
    OVERLAPPING_COPIES = 6
    SOURCE_OVERWRITTEN = 7
    COUNTS_DISAGREE = 8
    NOT_INITIALISED = 9
    INVALIDATED = 10
    INITIALISED_TWICE = 11
    INIT_NOT_PUBLISHED = 12
    BYTES_USED = 13
    TOO_MANY_ARRIVALS = 14
    PHASE_LAPPED = 15
    TX_RANGE = 16
    COUNT_RANGE = 17
    NO_COMPLETE = 18
    SIGNALS_PENDING = 19
    DIVERGENT = 20
    NO_PROXY_FENCE = 21
    WRITER_NO_FENCE = 22  # --policy isa: only the issuer executed a proxy fence (D2)
    READ_NO_FENCE = 23  # --policy isa: generic read, then asynchronous write (D1)
    OTHER_LANES = 24  # only other lanes of the warp acquired the edge
    READ_WAIT_ONLY = 25
    EXIT = 26
    OTHER_ISSUER = 27  # the waiting thread did not issue the operation (R-B4)
    WAITERS_PENDING = 32  # a barrier was invalidated while another warp may still test it
    SHARED_ID = 31  # a warp uses a named barrier, unordered with the previous generation (R-BAR3)
    OWN_WARP_WAITED = 30  # a warp of the warpgroup overwrites operands after its own wait only
    COPY_NO_FENCE = 29  # --policy isa: wgmma reads data of cp.async without a proxy fence
    ARRIVE_SCOPE = 33  # the edge exists, but the scope of the release excludes the other CTA
    WAIT_SCOPE = 34  # the scope of the release is wide enough, the acquire is .cta
    NOT_STARTED = 35  # another CTA's shared memory is used before that CTA is known to run (R-CL)
    REFILLED = 37  # no wait, or the stage was released before its last use
    AFTER_EXIT = 36  # another CTA's shared memory is used when that CTA may have exited (R-CL)
    MAP_NOT_ACQUIRED = 41  # a changed tensor map is used without an acquire fence
    BYTES_NOT_ANNOUNCED = 42  # copies bring more bytes than expect-tx announces (R-M7)
    MAP_NOT_RELEASED = 38
    MAP_CHANGED = 39  # a tensor map is changed while a copy that uses it is in flight (R-B7)
    NOT_IN_MASK = 43  # a lane executes bar.warp.sync with a mask that lacks it
    BARRIER_NUMBER = 44  # a CTA has barriers 0 to 15
    THREAD_COUNT = 45  # of a barrier: zero, or no multiple of 32
    ARRIVED_TWICE = 110  # at the barrier of the cluster, in one phase
    ARRIVALS_LEFT = 127  # of a round whose phase was over, with no harm in this launch (R-M3)
    EXPECT_UNORDERED = 129  # an expect-tx that no arrival of its phase is behind (R-M15)
    NOT_ARRIVED = 125  # a barrier.cluster.wait of a thread that has not arrived since its last one has returned
    OTHER_CALL = 111  # warps meet at different calls of __syncthreads() (R-BAR4)
    OUT_OF_STEP = 112  # the same at two places of one loop, in different iterations
    CROSSED_STORES = 114  # two threads store their own flag and load the other's, without fence.sc (R-MO2)
    BYTES_TOO_FEW = 133  # the same, and nobody has announced them when the launch is over
    SEQUENCE_READER = 130  # of a sequence lock: no fence between the data and the second look (R-MO3)
    SEQUENCE_WRITER = 131  # no fence between the sequence and the data
    SEQUENCE_BOTH = 132
    OTHER_LANE_RELEASED = 46  # another lane of the first access's warp made the release, with no warp barrier before it
    ALLOC_COLUMNS = 64  # tensor memory, from here on: not a power of two from 32 to 512 (R-A1)
    ALLOC_GROWS = 65  # R-A2
    ALLOC_RELINQUISHED = 66  # R-A3
    DEALLOC_MISMATCH = 67  # R-A4
    ALLOC_LIVE = 68  # R-A5
    OUTSIDE_ALLOCATION = 69  # R-A6
    USED_AFTER_DEALLOC = 70  # R-A6
    OTHER_QUARTER = 71  # R-T12
    NOT_UNIFORM = 72  # R-T13
    TWO_GROUPS = 73  # R-A9
    MASK_OUTSIDE = 74  # R-P6
    PAIR_NOT_STARTED = 75  # R-P1
    NO_FENCE_BEFORE = 76  # tcgen05.fence::before_thread_sync (R-T9)
    NO_FENCE_AFTER = 77  # tcgen05.fence::after_thread_sync
    FENCE_BY_THE_ISA = 78  # --policy isa: release and acquire, without a tcgen05.fence (T1)
    ISSUE_ORDER = 79  # --policy isa: only the order of issue (T3)
    ONLY_USED = 80  # --policy isa: a load without wait::ld, whose registers have been used (T2)
    COLLECTOR_EMPTY = 81  # R-T14: no valid fill
    COLLECTOR_OTHER = 82  # R-T14: filled with another matrix
    COLLECTOR_DISCARDED = 92  # R-T14: the fill is not valid any more
    EARLIER_COMMIT = 93  # a wait for the products before one that adds to their sum (R-T5), or that product came too early
    OTHER_LAYOUT = 83  # R-T16, a note
    REQUEST_AFTER_REFUSAL = 84  # cluster launch control, to 86 (R-C4)
    REFUSED_ID_USED = 85  # R-C5
    REQUESTS_OF_LANES = 86  # R-C8
    LANE_OF_THE_WARP = 87  # --policy isa: a lane below 32 in another warp than the first of four (T4)
    PEER_DEALLOC = 88  # --policy isa: dealloc of a pair without order behind the peer's accesses (T6)
    NO_FENCE_BEHIND_COMMIT = 89  # --policy isa: a generic write of operand bytes behind the wait for the commit (T13)
    FENCE_OF_OWN_CTA = 90  # --policy isa: fence.proxy.async.shared::cta for a product of the peer (T14)
    PHASE_NOT_WAITED = 95  # --policy isa: an arrival while nobody has waited for the phase that is over (D11)
    ACROSS_CTAS = 117  # --policy isa: operations of two CTAs through the async proxy, no fence between them (D4)
    COMPLETION_SCOPE = 118  # --policy isa: a wait of .cta scope for an operation of another CTA (D5)
    WEAKER_FENCES = 94  # --policy isa: an order that needs fence.sc on both sides, and has weaker fences or acquires (D17)
    WORDS_APART = 91  # alloc of a pair with two destinations (T22), a note
    POLL_NO_FENCE = 40  # --policy isa: a bulk load after a strong load of a flag in global memory (D14)
    NO_CLUSTER_BARRIER = 48  # the same of CTAs of one cluster
    MIXED_SIZES = 49  # both are strong, and of different bytes
    MIXED_ATOMICS = 113  # the same of two read-modify-writes, a warning (ISA 8.7.2)
    NO_SYNCHRONISATION = 50  # CTAs, in global memory: no observation leads from one to the other
    NO_RELEASE = 51  # one does, but nothing releases the first access
    NO_ACQUIRE = 52  # but nothing acquires it before the second access
    NO_RELEASE_NO_ACQUIRE = 47  # both
    RELEASE_SCOPE = 53  # but the scope of the release excludes the other CTA
    ACQUIRE_SCOPE = 54
    FLAG_SCOPE = 55  # but the scope of an access to the flag does
    OTHER_THREADS = 56  # another thread of the CTA has acquired it
    NOT_COHERENT = 57  # a load with .nc, or a fetch, of bytes that the launch writes
    ACCESS_SCOPE = 58  # both accesses are strong, and the scope of one excludes the other CTA
    FENCE_SCOPE = 59  # the scope of a fence between the two does
    SURFACE_OF_CTAS = 126  # CTAs access the same bytes of a surface (R-SU1)
    WRITTEN_LATER = 60  # the same of bytes that the launch writes afterwards
    WEAK_ACCESS = 61  # one of them is strong, as that of a flag or a lock, and the other is not
    RELEASED_BEFORE = 62  # the last release of the first one's CTA that the second one's knows of came before the first
    FLAG_BEFORE = 134  # the last flag of the first one that the second one has waited for was written before the first access
    FLAG_PASSED = 135  # the thread of the second one has read a flag before the first one's release of it, behind its access
    RELEASED_BY_OTHER = 63  # another thread made that release, and nothing orders the first access before it

    @property
    def situation(self) -> str:
        """`no-barrier`."""
        return self.name.lower().replace("_", "-")


class FindingFlags(enum.IntFlag):
    """Flags of a finding."""

    SAME_WARP = 1
    SAME_VALUE = 2
    OTHER_ASYNC = 4
    OTHER_ATOMIC = 8
    GLOBAL = 16  # the bytes are in global memory, at `address`
    TENSOR = 64  # cells of tensor memory: `offset` and `bytes` are columns, the rest of the place is in `address`
    NEAR_VALUE = 256  # two stores of 2 or 4 bytes, whose values are next to each other as floating-point numbers, and not equal
    FIRST_WRITE = 512  # the launch has written none of the bytes before the first access, a write
    GRID = 128  # thread numbers run through all CTAs of the grid: `cta_threads`, `cluster` and `rank` are those of the grid


KEY_FLAGS: Final = FindingFlags.SAME_WARP | FindingFlags.SAME_VALUE | FindingFlags.NEAR_VALUE
"""Findings that differ in one of these are not merged."""

UNORDERED: Final = 32
"""A flag of a finding that no report has: the issue of the operation is not ordered either."""


class Operation(enum.IntEnum):
    """The kind of an operation in flight. Bit 0: it writes shared memory."""

    BULK_STORE = 2
    BULK_LOAD = 3
    WGMMA = 4
    STORE_ASYNC = 5
    TCGEN05_MMA = 6
    LAUNCH_REQUEST = 7
    TCGEN05_CP = 8
    BULK_SOURCE = 10  # the source of a copy to another CTA
    TCGEN05_SHIFT = 12
    TCGEN05_LD = 14
    TCGEN05_ST = 16


class Parted(enum.IntEnum):
    """The places of the lanes that did not come to a warp-synchronous instruction."""

    ELSEWHERE = 0  # at another one
    PAST = 1
    EXITED = 2


@dataclass(frozen=True)
class KindOf:
    """The parts that each finding of a kind has, beside its place.

    `name`: in reports; "": the report adds it to another finding. `two_sides`: a second instruction, and its thread. `completes`: how an
    operation completes. `conflicts`: two accesses, in a hazard.
    """

    name: str
    two_sides: bool = False
    completes: bool = False
    conflicts: bool = False


def _conflict(name: str) -> KindOf:
    return KindOf(name, two_sides=True, completes=True, conflicts=True)


KINDS: dict[Kind, KindOf] = {
    Kind.DATA_RACE: _conflict("data-race"),
    Kind.MISSING_WAIT: _conflict("missing-wait"),
    Kind.MISSING_PROXY_FENCE: _conflict("missing-proxy-fence"),
    Kind.SCOPE: _conflict("scope"),
    Kind.GLOBAL_RACE: _conflict("global-race"),
    Kind.UNINITIALIZED_READ: KindOf("uninitialized-read"),
    Kind.READ_EXPLAINED: KindOf(""),
    Kind.OUT_OF_BOUNDS: KindOf("out-of-bounds"),
    Kind.BARRIER_MISUSE: KindOf("barrier-misuse", two_sides=True),
    Kind.DIVERGENCE: KindOf("barrier-misuse", two_sides=True),
    Kind.TENSOR_MISUSE: KindOf("tcgen05-misuse", two_sides=True),
    Kind.MISSING_TENSOR_FENCE: _conflict("missing-tcgen05-fence"),
    Kind.LAUNCH_MISUSE: KindOf("clc-misuse", two_sides=True),
    Kind.MISSING_ORDER: _conflict("missing-order"),
    Kind.LIFETIME: KindOf("lifetime", completes=True),
    Kind.DEADLOCK: KindOf("deadlock"),
    Kind.WAITER: KindOf(""),
    Kind.LANES_GONE: KindOf(""),
}


@dataclass(frozen=True)
class MbarrierPhase:
    """An mbarrier at one of its phases, which are counted from its init. With `expected` and `state` 0 it was never initialised."""

    offset: int
    phase: int
    expected: int  # arrivals of a phase
    state: int  # word `state` (abi/bits.py), as it was


@dataclass(frozen=True)
class LastWait:
    """The last wait at an mbarrier before the second access of a missing wait, in its thread.

    `site`: its instruction. `offset`: of the mbarrier. `phase`: that was over then; -1: the one before the first. `signal`: the instruction
    that ended that phase, and `signaller` its thread; 0: not known.
    """

    site: int
    offset: int
    phase: int
    signal: int
    signaller: int


@dataclass(frozen=True)
class Completion:
    """How an operation completes: by a phase of an mbarrier, or by a group."""

    group: int
    commits: int  # groups that its thread has committed
    retired: int  # groups that waits of its thread have retired
    barrier: MbarrierPhase | None = None


@dataclass(frozen=True)
class FlagSites:
    """The flag that leads from one access to another: the instructions that write it and read it; 0: none.

    `fence`: the fence or release before the write.
    """

    write: int
    read: int
    fence: int


@dataclass(frozen=True)
class Split:
    """Lane masks: the lanes that came, those that did not, and which of these have exited. `how` says where those are."""

    came: int
    others: int
    exited: int
    how: Parted


@dataclass(frozen=True)
class Waiting:
    """Threads that wait for the same event at the same place."""

    threads: int
    lanes: int  # mask of those in the first warp
    arrived: int  # threads
    expected: int


@dataclass(frozen=True, order=True)
class LanesGone:
    """A point at which lanes take values of others, and some of the warp have exited or do not exist. Whether one uses such a value, the
    text says. `rank`: of the CTA in its cluster; `came`, `gone`: masks of lanes.
    """

    site: int
    rank: int
    warp: int
    came: int
    gone: int


@dataclass(frozen=True)
class Geometry:
    """The launch, and how threads and offsets are numbered. In clusters they run through all CTAs: `cta_threads`, `cta_bytes` of each.

    With FindingFlags.GRID threads run through all CTAs of the grid: `cta_threads`, `cluster` and `rank` are those of the grid.
    """

    ctaid: Dim3  # of the CTA that the finding was made for
    ntid: Dim3
    shared_bytes: int  # of a CTA
    cluster: Dim3 = (0, 0, 0)
    cta_threads: int = 0
    cta_bytes: int = 0
    rank: int = 0  # of that CTA
    rank_grid: int = 0  # of a launch for several GPUs: the CTAs of one in the last dimension of the grid; else 0


@dataclass(frozen=True)
class FindingRecord:
    """One finding, merged over all CTAs. Sites are numbers of instructions; 0: none.

    `low` to `high`: the bytes of all that were merged; `low` may be negative. `index`: its place among the findings of its launch.
    """

    kind: Kind
    reason: Reason
    flags: FindingFlags
    module: int
    entry: int  # the kernel's number in the module
    index: int
    site: int
    other_site: int
    thread: int
    offset: int
    bytes: int
    geometry: Geometry
    count: int = 1
    ctas: int = 1
    low: int = 0
    high: int = 0
    hazard: Hazard = Hazard.NONE
    other_thread: int = 0
    operation: int = 0  # an Operation, of the other side; 0: an access, or a cp.async
    own_operation: int = 0
    number: int = 0  # of a barrier of the CTA, a lane, columns, or a cta_group
    address: int = 0  # in global memory; of tensor memory: first lane + 2^8 lane behind the last + 2^32 site of the alloc
    completion: Completion | None = None
    barrier: MbarrierPhase | None = None  # of a misuse, or that is waited for
    waited: LastWait | None = None
    flag: FlagSites | None = None
    split: Split | None = None
    waiting: Waiting | None = None
    readers: tuple[int, int] | None = None  # of shared memory: the first and the last of the threads that read, of all that were merged
    lane_bits: int = 0  # the bits in which the numbers of the two lanes differ, of all that were merged


def bounds(offset: int, nbytes: int, low: int, high: int, *, of_cluster: bool) -> tuple[int, int]:
    """`low` and `high` of a record, from numbers of 32 bits. An offset below a CTA's memory is a negative number, whose end wraps."""
    below = offset >> 31 and not low >> 31 and not of_cluster
    low = offset - (1 << 32) if below else low
    return low, high if high > low else low + nbytes
