"""Findings as the device's runtime writes them: a tag, fields that all have, and the fields of one type.

The C++ side writes `struct Finding`, a union of these records behind the fields of `Event` that merge findings (header.py). `record_of`
gives a FindingRecord.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from consan.instrument.abi.records import Record, dtype, record, size
from consan.instrument.findings import (
    KINDS,
    Completion,
    Dim3,
    FindingFlags,
    FindingRecord,
    Geometry,
    Hazard,
    Kind,
    MbarrierPhase,
    Parted,
    Reason,
    Split,
    Waiting,
    bounds,
)
from consan.instrument.layouts.records import integers

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
    u32 group    its group
    u32 commits  groups that its thread has committed
    u32 retired  groups that waits of its thread have retired
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

TYPES: dict[Kind, Record] = {
    **{kind: CONFLICT for kind, each in KINDS.items() if each.conflicts},
    Kind.UNINITIALIZED_READ: READ,
    Kind.READ_EXPLAINED: READ,
    Kind.OUT_OF_BOUNDS: BOUND,
    Kind.BARRIER_MISUSE: MISUSE,
    Kind.DIVERGENCE: DIVERGENCE,
    Kind.TENSOR_MISUSE: TENSOR_MISUSE,
    Kind.LAUNCH_MISUSE: TENSOR_MISUSE,
    Kind.LIFETIME: LIFETIME,
    Kind.DEADLOCK: WAITER,
    Kind.WAITER: WAITER,
    Kind.LANES_GONE: BOUND,
}
"""The record with the fields of each kind."""

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


def records_of(ring: npt.NDArray[np.void], table: npt.NDArray[np.void] | None) -> list[FindingRecord]:
    """All valid FINDINGs of a ring that is nearly empty. `table`: their TableEntries, if they could be read."""
    return [_record_of(each, table) for each in ring[ring["event"]["valid"] & 1 == 1]]


def _record_of(finding: Any, table: npt.NDArray[np.void] | None) -> FindingRecord:
    event, kind = finding["event"], Kind(int(finding["event"]["kind"]))
    own: Any = np.frombuffer(finding["words"].tobytes(), dtype(TYPES[kind]), 1)[0] if TYPES[kind].fields else np.void(b"")
    names = own.dtype.names or ()
    given = integers(event, *_COMMON) | integers(own, *(name for name in _OWN if name in names))
    given |= _merged(given, table[int(event["table"])] if table is not None else None, of_cluster=bool(event["cta_bytes"]))
    if "hazard" in names:
        given["hazard"] = Hazard(int(own["hazard"]))
    if "completion" in names:
        done = own["completion"]
        given["completion"] = Completion(**integers(done, "group", "commits", "retired"), barrier=_barrier(done["barrier"]))
    if "barrier" in names:
        given["barrier"] = _barrier(own["barrier"])
    if kind is Kind.DIVERGENCE:
        given["split"] = Split(**integers(own, "came", "others", "exited"), how=Parted(int(own["how"])))
    if "threads" in names:
        given["waiting"] = Waiting(**integers(own, "threads", "lanes", "arrived", "expected"))
    places: dict[str, Any] = {name: dim3(event[name]) for name in ("ctaid", "ntid", "cluster")}
    given["geometry"] = Geometry(**places, **integers(event, "shared_bytes", "cta_threads", "cta_bytes", "rank"))
    flags, reason = FindingFlags(int(event["flags"])), Reason(int(event["reason"]))
    return FindingRecord(kind=kind, reason=reason, flags=flags, index=int(event["table"]), **given)


_COMMON = ("module", "entry", "site", "other_site", "thread", "offset", "bytes")
_OWN = ("other_thread", "operation", "own_operation", "number", "address")


def _merged(common: dict[str, int], entry: Any, *, of_cluster: bool) -> dict[str, int]:
    """Count, CTAs and bounds. The device keeps the complement of the lower bound, so that zeroed memory is the identity of its maximum."""
    begin, nbytes = common["offset"], common["bytes"]
    if entry is None:
        return {"low": begin, "high": begin + nbytes}
    low, high = bounds(begin, nbytes, int(~entry["low"]) & 0xFFFFFFFF, int(entry["high"]), of_cluster=of_cluster)
    return {"count": max(1, int(entry["count"])), "ctas": max(1, int(entry["ctas"])), "low": low, "high": high}


def _barrier(state: Any) -> MbarrierPhase | None:
    if not state["place"]:
        return None
    return MbarrierPhase(int(state["place"]) - 1, **integers(state, "phase", "expected", "state"))


def dim3(values: Any) -> Dim3:
    """Three numbers of a record."""
    x, y, z = (int(value) for value in values)
    return x, y, z
