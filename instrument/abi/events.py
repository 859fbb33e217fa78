"""Findings as the device writes them, and as the reports read them: a tag, fields that all have, and the fields of one type.

A kind of finding is a line of TYPES: its tag, its name in reports, and the record with its own fields. The C++ side writes
`struct Finding`, a union of these records behind the fields of `Event` that merge findings (header.py). `read` gives the host's view.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from consan.instrument.abi.records import Record, dtype, record, size


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
    NOT_ARRIVED = 125  # a barrier.cluster.wait of a thread that has not arrived since its last one has returned
    OTHER_CALL = 111  # warps meet at different calls of __syncthreads() (R-BAR4)
    OUT_OF_STEP = 112  # the same at two places of one loop, in different iterations
    CROSSED_STORES = 114  # two threads store their own flag and load the other's, without fence.sc (R-MO2)
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
    RELEASE_SCOPE = 53  # but the scope of the release excludes the other CTA
    ACQUIRE_SCOPE = 54
    FLAG_SCOPE = 55  # but the scope of an access to the flag does
    OTHER_THREADS = 56  # another thread of the CTA has acquired it
    NOT_COHERENT = 57  # a load with .nc of bytes that the launch writes
    ACCESS_SCOPE = 58  # both accesses are strong, and the scope of one excludes the other CTA
    FENCE_SCOPE = 59  # the scope of a fence between the two does
    WRITTEN_LATER = 60  # a load with .nc of bytes that the launch writes afterwards
    WEAK_ACCESS = 61  # one of them is strong, as that of a flag or a lock, and the other is not
    RELEASED_BEFORE = 62  # the last release of the first one's CTA that the second one's knows of came before the first
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
    GRID = 128  # thread numbers run through all CTAs of the grid: `cta_threads`, `cluster` and `rank` are those of the grid
    BOTH_SIDES = 512  # of NO_RELEASE: nothing acquires it either


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


EVENT = record(
    "Event",
    "what every finding begins with",
    """
    u32 valid         1: complete
    u32 module        number of the module
    u32 kind          Kind: the type of the fields that follow
    u32 reason        Reason
    u32 flags         FindingFlags
    u32 site          number of the instruction
    u32 other_site    of the other instruction, or what else tells findings of a site apart; 0: none
    u32 entry         number of the kernel
    u32 table         place of its TableEntry
    u32 thread        that executed the instruction; in clusters, numbers run through all CTAs
    u32 offset        first byte of shared memory; in clusters, offsets run through all CTAs
    u32 bytes         how many
    u32 ctaid[3]      %ctaid of the CTA that wrote this
    u32 ntid[3]       %ntid
    u32 shared_bytes  of a CTA
    u32 cta_bytes     in clusters: offsets of each CTA; else 0
    u32 cta_threads   in clusters: thread numbers of each CTA; else 0
    u32 cluster[3]    in clusters: %cluster_nctaid
    u32 rank          in clusters: of the CTA that wrote this
    u32 pad           -
    """,
)
BARRIER_STATE = record(
    "BarrierState",
    "an mbarrier at one of its phases",
    """
    u32 place     offset plus one; 0: no mbarrier
    u32 phase     counted from its init
    u32 expected  arrivals of a phase; with `state` 0: never initialised
    u32 pad       -
    u64 state     word `state` (bits.py), as it was
    """,
)
COMPLETION = record(
    "Completion",
    "how an operation completes: by a phase of an mbarrier, or by a group",
    """
    u32 group    its group; with FindingFlags.GRID: the instruction that writes the flag between two CTAs
    u32 commits  groups that its thread has committed; the instruction that reads the flag
    u32 retired  groups that waits of its thread have retired; the fence or release before the write
    u32 pad      -
    BarrierState barrier  the phase
    """,
)
CONFLICT = record(
    "Conflict",
    "two accesses, of which one may be an operation in flight: a race, a missing wait, fence or scope",
    """
    u32 hazard         Hazard
    u32 other_thread   that executed the other instruction
    u32 operation      Operation of the other side; 0: an access, or a cp.async
    u32 own_operation  Operation of this side
    u64 address        with FindingFlags.GLOBAL: first byte; with TENSOR: first lane + 2^8 lane behind the last + 2^32 site of the alloc
    Completion completion  of the operation, of the other side if both are
    """,
)
READ = record(
    "UninitialisedRead",
    "a read of bytes that nothing has written",
    """
    u32 own_operation  Operation; 0: an access
    u32 pad            -
    u64 address        with FindingFlags.TENSOR: as in Conflict
    """,
)
LIFETIME = record(
    "Lifetime",
    "an access to memory of a CTA that does not run, or an operation in flight when its CTA exits",
    """
    u32 own_operation  Operation; 0: an access, or a cp.async
    u32 pad            -
    Completion completion  of the operation
    """,
)
MISUSE = record(
    "Misuse",
    "a barrier that is not used as it must be",
    """
    u32 other_thread  that executed the other instruction
    u32 number        of a barrier of the CTA
    BarrierState barrier  or an mbarrier
    """,
)
TENSOR_MISUSE = record(
    "TensorMisuse",
    "an instruction of tensor memory, or of cluster launch control, that is not used as it must be",
    """
    u32 other_thread  that executed the other instruction
    u32 number        columns, lane or cta_group
    u64 address       as in Conflict
    """,
)
DIVERGENCE = record(
    "Divergence",
    "a warp-synchronous instruction that some lanes do not reach",
    """
    u32 other_thread  the first of the other lanes
    u32 came          mask of the lanes that came
    u32 others        mask of those that did not
    u32 exited        mask of those of them that have exited
    u32 how           Parted
    u32 pad           -
    """,
)
WAITER = record(
    "Waiter",
    "threads that wait for the same event at the same place",
    """
    u32 threads   how many
    u32 lanes     mask of those in the first warp
    u32 number    of the barrier of the CTA, or CLUSTER_BARRIER
    u32 arrived   threads that have arrived there
    u32 expected  threads that it waits for
    u32 pad       -
    BarrierState barrier  or the mbarrier
    """,
)
BOUND = Record("Bound", "an access outside the memory of its CTA", ())

TYPES: dict[Kind, tuple[str, Record]] = {
    Kind.DATA_RACE: ("data-race", CONFLICT),
    Kind.MISSING_WAIT: ("missing-wait", CONFLICT),
    Kind.MISSING_PROXY_FENCE: ("missing-proxy-fence", CONFLICT),
    Kind.SCOPE: ("scope", CONFLICT),
    Kind.GLOBAL_RACE: ("global-race", CONFLICT),
    Kind.UNINITIALIZED_READ: ("uninitialized-read", READ),
    Kind.READ_EXPLAINED: ("", READ),
    Kind.OUT_OF_BOUNDS: ("out-of-bounds", BOUND),
    Kind.BARRIER_MISUSE: ("barrier-misuse", MISUSE),
    Kind.DIVERGENCE: ("barrier-misuse", DIVERGENCE),
    Kind.TENSOR_MISUSE: ("tcgen05-misuse", TENSOR_MISUSE),
    Kind.MISSING_TENSOR_FENCE: ("missing-tcgen05-fence", CONFLICT),
    Kind.LAUNCH_MISUSE: ("clc-misuse", TENSOR_MISUSE),
    Kind.MISSING_ORDER: ("missing-order", CONFLICT),
    Kind.LIFETIME: ("lifetime", LIFETIME),
    Kind.DEADLOCK: ("deadlock", WAITER),
    Kind.WAITER: ("", WAITER),
}
"""The name of each kind in reports ("": the report adds it to another finding), and the record with its own fields."""

MEMBERS = {
    CONFLICT: "conflict",
    READ: "read",
    LIFETIME: "lifetime",
    MISUSE: "misuse",
    TENSOR_MISUSE: "tensor",
    DIVERGENCE: "divergence",
    WAITER: "waiter",
}
"""The names of these records in C++, where they are members of a union."""
FINDING = record(
    "FindingRecord",
    "a finding in the ring",
    f"""
    Event event  the fields of all
    u64 words[{max(map(size, MEMBERS)) // 8}]  the fields of its type
    """,
)


@dataclass(frozen=True)
class Found:
    """A finding, read by its type: the fields of all, and its own."""

    kind: Kind
    event: Any
    own: Any

    @classmethod
    def of(cls, finding: Any) -> Found:
        """Read a FINDING."""
        kind = Kind(int(finding["event"]["kind"]))
        _, own = TYPES[kind]
        return cls(kind, finding["event"], np.frombuffer(finding["words"].tobytes(), dtype(own), 1)[0] if own.fields else None)
