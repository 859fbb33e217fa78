"""Templates: what the words of a block mean. Written by the pass, read by the checker (consan/checker/source/log.hpp).

Word 0 of a block is its number, from 1 on. A field that ends in `_word` is the position of a word in the block, or NO_WORD.
An event that has a guard word, or an address word, with all bits set did not happen.
"""

from __future__ import annotations

import enum
import operator
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

NO_WORD = -1
END = 0xFFFFFFFF  # in place of a block's number: the thread has exited
STOP = 0xFFFFFFFE  # the thread waits at the last event of the block before
LEFT = 0xC0000000  # added to a line of the PTX: there the thread has left, because the host stopped the launch
LANES = 32
WORD_BYTES = 4
LINE_BYTES = LANES * WORD_BYTES  # one word of each lane of a warp


class Event(enum.IntEnum):
    """The kinds of events."""

    READ = 1
    WRITE = 2
    ATOMIC = 3
    BARRIER = 4
    WARP_BARRIER = 5
    POINT = 6  # an instruction that lanes must reach together (passes/points.py)
    JOIN = 7  # a place past some points
    COPY = 8  # a cp.async is issued
    COPY_COMMIT = 9
    COPY_WAIT = 10
    GLOBAL_WRITE = 11  # only in modules with copies that have a side in global memory
    MBARRIER_INIT = 12
    MBARRIER_INVAL = 13
    MBARRIER_ARRIVE = 14
    MBARRIER_TX = 15
    MBARRIER_WAIT = 16  # one that returned true
    MBARRIER_COPIES = 17  # cp.async.mbarrier.arrive
    PROXY_FENCE = 18
    BULK_LOAD = 19  # a bulk copy to shared memory is issued
    BULK_STORE = 20  # one from shared memory, or a reduction
    BULK_COMMIT = 21
    BULK_WAIT = 22
    GLOBAL_READ = 23  # only in modules with bulk stores
    TENSOR_LOAD = 24
    TENSOR_STORE = 25
    PRODUCT = 26  # an operand of wgmma.mma_async in shared memory
    PRODUCT_COMMIT = 27
    PRODUCT_WAIT = 28
    CLUSTER_ARRIVE = 29
    CLUSTER_WAIT = 30
    FENCE = 31  # only in modules with relaxed arrivals or waits, or whose threads may synchronise through memory
    INITS_FENCE = 32  # fence.mbarrier_init
    FILL = 33  # st.bulk
    STORE_ASYNC = 34  # st.async, red.async
    BULK_PUSH = 35  # a bulk copy from shared memory to that of a CTA of the cluster
    LAUNCH_REQUEST = 36  # clusterlaunchcontrol, to 38 (launch_control.py)
    LAUNCH_ANSWER = 37  # a response has been decoded
    LAUNCH_USE = 38  # the id in a response is used
    MAP_FENCE = 40  # fence.proxy.tensormap
    PRODUCT_FENCE = 39  # wgmma.fence: orders registers, which no log holds; only in changes of a text
    OBSERVE = 61  # a strong access, where global memory is checked: before the access itself
    PUBLISH = 62  # the same: after it
    GRID_WAIT = 63  # griddepcontrol.wait, where global memory is checked
    TENSOR_ALLOC_REQUEST = 64  # tcgen05, from here on (tensor_memory.py)
    TENSOR_ALLOC = 65  # one that has been served
    TENSOR_DEALLOC = 66
    TENSOR_RELINQUISH = 67
    TENSOR_LD = 68
    TENSOR_ST = 69
    TENSOR_WAIT = 70
    TENSOR_MMA = 71
    TENSOR_CP = 72
    TENSOR_SHIFT = 73
    TENSOR_COMMIT = 74
    TENSOR_FENCE = 75
    UNSEEN = 76  # a strong access to memory that the log does not name (global_memory.py), where global memory is checked


class Flag(enum.IntFlag):
    """Properties of an event."""

    STRONG = 1
    WAITS = 2  # a barrier: the thread waits, it does not only arrive
    AGAIN = 2  # a load of data: a loop may throw the value away and load again (R-MO1)
    UNUSED = 4  # nothing reads the loaded value, or what a read-modify-write has read
    ALIGNED = 8  # a point: after a divergence the behaviour is undefined
    WHOLE = 16  # a point: no lane of the warp may have exited
    MASKED = 32  # a point: its members are those of a mask, and `key` identifies it; a bulk store: `c` chooses bytes of each 16
    DROP = 64  # an arrival at an mbarrier: for all phases to come
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
    RELEASES = 131072
    PAIR = 262144  # .cta_group::2; a multicast: the mbarrier is one of each pair of CTAs
    MULTICAST = 524288  # for all CTAs of a mask
    SINGLE = 1048576  # .cta_group::1
    OWN_ROWS = 2097152  # an operand of which each warp reads a quarter of the rows
    FOUR_ROWS = 4194304  # a tensor copy of four rows: tile::gather4, tile::scatter4
    MAP = 8388608  # a tensor copy whose map may be in global memory
    NC = 1 << 24  # a load from memory that is claimed to be read-only
    READS = 1 << 25  # OBSERVE, PUBLISH: the thread gets the value
    WRITES = 1 << 26  # the same: it stores one
    WARPGROUP = 1 << 28  # a barrier of each warpgroup; only in changes
    CONSTANT = 1 << 29  # a stored value that the text gives
    DATA = 1 << 30  # a relaxed load: what it gives is stored, or added up, and decides nothing; a strong store: it counts (R-MO1)
    IGNORED = 1 << 31  # an access that is compared with no other (passes/annotated.py)
    SEAL = 1 << 27  # a barrier behind which no thread has copies in flight (seals.py)


class MatrixRow(enum.IntEnum):
    """How the lanes of a warp share a row of `ldmatrix` or `stmatrix` whose address one of them gives (R-ROW)."""

    NOBODY = 0  # that lane has it all: other accesses, and forms whose sharing is not modelled
    WORDS = 1  # four lanes have a word each
    ELEMENTS = 2  # with `.trans` eight lanes have two bytes each


@dataclass(frozen=True)
class TemplateEvent:
    """One event. For accesses `a` is the bytes of an element, `b` the lanes that give an address, and `c` of reads and writes a MatrixRow.

    For barriers `a` is the id and `b` the thread count (-1: all); for warp barriers and points `a` is the member mask; for points `b`
    is the key and `offset` the number of the join; for joins `a` is the set of joins. For copies `b` is the bytes that are read; for waits
    `a` is the groups that may stay in flight. The value of a copy or a write to global memory is an address: two words, not hashed.
    For mbarriers `a` is a count, bytes (transactions) or a parity (waits), `b` the bytes that an arrival expects.
    For proxy fences `a` has a bit for each memory (1: shared, 2: global). For bulk copies `a` is the bytes, and the sum of `b` and its word
    the mbarrier of a load; the value is the address in global memory. For tensor copies `bytes` is the number of dimensions, and the
    value's words are those of tensors.py. The value of a fence for a tensor map is the map's address. For multicasts `c` is the mask of
    CTAs, for pushes the sum of `c` and its word the source.
    For st.bulk `b` is the bytes. For products `bytes` is the rows, `offset` the depth, and `a` and `b` the descriptor's halves.
    For tcgen05 the address is one of tensor memory, but for `alloc` (where the address goes) and `commit` (the mbarrier); for `alloc` and
    `dealloc` `a` is the columns and `b` the address in tensor memory; for waits `a` is 1 (loads) or 2; for fences 1 behind synchronisation.
    For a launch request the sum of `b` and its word is the mbarrier; for an answer `a` is 1 if a cluster was cancelled, and `b` the number
    of the query for its id (0: none); for a use `b` is that number.
    For barriers `c` is the number of the call of `__syncthreads()` in the source, 0 for others.
    For weak loads from global memory `c` is the stores that the value goes into, for weak stores the store's own bit (uses.py).
    Where global memory is checked, and for fences, `offset` is what an operation orders, and its scope (orders.py).
    """

    kind: int
    flags: int = 0
    site: int = 0
    bytes: int = 0
    offset: int = 0
    address_word: int = NO_WORD
    guard_word: int = NO_WORD
    value_word: int = NO_WORD
    a: int = 0
    a_word: int = NO_WORD
    b: int = 0
    b_word: int = NO_WORD
    c: int = 0
    c_word: int = NO_WORD

    @property
    def has_words(self) -> bool:
        """Whether words of its block say what it did."""
        return any(getattr(self, each.name) != NO_WORD for each in fields(self) if each.name.endswith("_word"))


@dataclass
class Template:
    """A block: its events in order, and the number of its words."""

    number: int
    words: int = 1
    events: list[TemplateEvent] = field(default_factory=list)


EVENT_DTYPE = np.dtype([(each.name, "<i4") for each in fields(TemplateEvent)])
_FIELDS = operator.attrgetter(*EVENT_DTYPE.names or ())
BLOCK_DTYPE = np.dtype([("first", "<i4"), ("events", "<i4"), ("words", "<i4")])


def tables(templates: list[Template]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """The blocks, indexed by number (0 is unused), and the events of all of them."""
    events = [event for template in templates for event in template.events]
    blocks = np.zeros(len(templates) + 1, BLOCK_DTYPE)
    first = 0
    for template in templates:
        blocks[template.number] = (first, len(template.events), template.words)
        first += len(template.events)
    rows = np.array(list(map(_FIELDS, events)), np.int64).astype("<i4")  # numbers beyond 31 bits become negative
    return blocks, rows.view(EVENT_DTYPE).reshape(-1)
