"""The bits of yes-or-no attributes in a row. An attribute of an effect has the bit of its name in capitals."""

from __future__ import annotations

import enum


class Flag(enum.IntFlag):
    """Properties of an effect that the text gives, beside numbers."""

    STRONG = 1
    WAITS = 2  # a barrier or a point: the thread waits, it does not only arrive
    AGAIN = 2  # a load of data: a loop may throw the value away and load again (R-MO1)
    UNUSED = 4  # nothing reads the loaded value, or what a read-modify-write has read
    RESTRICTED = 4  # a fence: for shared memory only
    OF_PUTS = 8  # a fence: none itself, but the next one is of puts
    POLLS = 8  # a strong access in a loop that may wait for another thread
    ALIGNED = 8  # a point: after a divergence the behaviour is undefined
    OWN_PUTS = 16  # a fence: none itself; with OF_PUTS a put with its own signal begins, else it ends
    WHOLE = 16  # a point: no lane of the warp may have exited
    LOOKED_UP = 16  # a strong access: its place follows from an index that the thread has loaded (R-MO2)
    COMPARED = 32  # a load of data: its thread reads a word before and behind it, and compares the two values (R-MO3)
    MASKED = 32  # a point: its members are those of a mask, and `key` identifies it; a bulk store: `chosen` bytes of each 16
    DROP = 64  # an arrival at an mbarrier: for all phases to come
    UNIFORM = 64  # a stored value that all lanes of the warp have: the instruction is executed once
    SHUFFLES = 64  # a point: lanes take values from each other there, or before the next point
    NO_COMPLETE = 128  # an arrival that must not complete the phase
    NOINC = 256  # cp.async.mbarrier.arrive: an arrival that the count includes
    COMPLETE = 512  # a transaction: bytes have come, not announced
    READ_ONLY = 1024  # a wait for bulk groups: only their sources have been read
    ADDS = 2048  # a reduction or an atomic, to global memory
    MAJOR = 4096  # an operand whose major dimension is not K
    RANKED = 8192  # an address that names a CTA of the cluster
    NARROW = 16384  # of .cta scope; a proxy fence: for shared memory of the own CTA
    RELAXED = 32768  # an arrival or a wait that orders nothing by itself
    ACQUIRES = 65536  # a fence
    RELEASES = 131072  # a fence; a write of a tensor map that a fence follows
    PAIR = 262144  # .cta_group::2; a multicast: the mbarrier is one of each pair of CTAs
    MULTICAST = 524288  # for all CTAs of a mask
    SINGLE = 1048576  # .cta_group::1
    OWN_ROWS = 2097152  # an operand: each warp reads a quarter of its rows
    FOUR_ROWS = 4194304  # a tensor copy of four rows: tile::gather4, tile::scatter4
    MAP = 8388608  # a tensor copy whose map may be in global memory
    NC = 1 << 24  # a load from memory that is claimed to be read-only
    READS = 1 << 25  # a strong access: the thread gets the value
    WRITES = 1 << 26  # the same: it stores one
    SEAL = 1 << 27  # a barrier after which no thread has copies in flight (record/seals.py)
    WARPGROUP = 1 << 28  # a barrier of each warpgroup; only in changes of a text
    CONSTANT = 1 << 29  # a stored value that the text gives
    DATA = 1 << 30  # a relaxed load: what it gives is stored, or added up, and decides nothing; a strong store: it counts (R-MO1)
    IGNORED = 1 << 31  # an access that is compared with no other (functions/annotated.py)


class MatrixRow(enum.IntEnum):
    """How the lanes of a warp share a row of `ldmatrix` or `stmatrix` whose address one of them gives (R-ROW)."""

    NOBODY = 0  # that lane has it all: other accesses, and forms whose sharing is not modelled
    WORDS = 1  # four lanes have a word each
    ELEMENTS = 2  # with `.trans` eight lanes have two bytes each


FLAGS = {name: int(flag) for name, flag in Flag.__members__.items()}
