"""The flags that hooks take, one enumeration for each kind of argument. hooks.py says which parameter takes which."""

from __future__ import annotations

import enum


class AccessFlags(enum.IntFlag):
    """The properties of an access that the runtime checks."""

    READ = 0
    WRITE = 1
    RMW = 2
    STRONG = 4
    COPY = 8  # by cp.async
    BARRIER = 16  # by an operation on an mbarrier
    ENGINE = 32  # by a bulk copy, a tensor copy or a matrix product
    CTA = 64  # its scope is the CTA
    WIDE_WAIT = 128  # R-SCOPE: look for an order as if every wait had a scope that is wide enough
    WIDE = 256  # R-SCOPE: the same for arrivals


class SiteFlags(enum.IntFlag):
    """Flags above the number of a site."""

    NONE = 0
    CTA = 1 << 31  # in clusters: the scope of the strong access is the CTA


class KernelFlags(enum.IntFlag):
    """Flags above the number of a kernel."""

    NONE = 0
    OPEN = 1 << 31  # something could signal a barrier unseen: no deadlock is proven


class PatternFlags(enum.IntFlag):
    """A strong access, as a part of a release or acquire pattern."""

    NONE = 0
    ORDERS = 1  # it releases or acquires by itself; otherwise a fence may
    CTA = 2  # in clusters: its scope is the CTA


class ArriveFlags(enum.IntFlag):
    """An arrival at an mbarrier."""

    DROP = 1
    RELAXED = 2
    NO_COMPLETE = 4
    CTA = 8  # its scope is the CTA


class WaitFlags(enum.IntFlag):
    """A wait at an mbarrier."""

    DONE = 1  # it returned true
    RELAXED = 2
    PURE = 4  # if it fails, the thread comes back to it without any effect (waits/waits.py)
    CTA = 8  # its scope is the CTA


class GlobalFlags(enum.IntFlag):
    """An access to global memory, or to a tensor map there."""

    NONE = 0
    WRITE = AccessFlags.WRITE
    RMW = AccessFlags.RMW
    EDGES = 64  # threads may synchronise through global memory


class MapFlags(enum.IntFlag):
    """A change of a tensor map in global memory."""

    NONE = 0
    RELEASES = 1  # tensormap.cp_fenceproxy: by a warp, and also a release
    EDGES = GlobalFlags.EDGES


class ResultFlags(enum.IntFlag):
    """A bulk copy to global memory, above its site."""

    NONE = 0
    REDUCES = 1


class OperationFlags(enum.IntFlag):
    """Flags above the kind of an operation."""

    NONE = 0
    INFORMED = 0x100  # a load whose issuer had observed all phases before this one
    REFILL = 0x200  # a load of the bytes that an earlier one wrote
    ADDS = 0x400  # red.async, bulk reductions: relaxed, .cluster scope; no race with other strong accesses to the same bytes
    OWN_ROWS = 0x800  # rows of an operand that one warp of the warpgroup reads
    RETIRED = 0x10000  # the place of the record is free


class Threads(enum.IntEnum):
    """The threads for which a barrier without a thread count waits."""

    ALL_THREADS = 0xFFFFFFFF  # every thread of the CTA participates and waits
    ALL_MIXED = 0xFFFFFFFE  # every thread participates, but some may only arrive


class What(enum.IntEnum):
    """The identity of a warp-synchronous instruction (word `point`). Numbers between are those of opcodes."""

    ALIGNED = 0  # the same point is the same instruction
    WHOLE = 1  # the same, and no lane of the warp may have exited
    FIRST_OPCODE = 2  # of an instruction with a mask: the same point is the same mask
    LAST_OPCODE = 254
    JOINED = 255  # no point, but joins passed
