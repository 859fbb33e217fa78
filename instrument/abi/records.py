"""The records of the shadow, one table each: type, name, number of elements, meaning (layouts/records.py reads them).

A number of elements is a product of numbers and of names of sizes.py. A line that begins with `cluster` exists only in variants for
clusters. The C++ header and the NumPy dtypes follow from these tables; the header asserts every offset. Fields have no hidden padding.
Words that pack several numbers are described in bits.py.
"""

from __future__ import annotations

from consan.instrument.abi.sizes import sizes
from consan.instrument.layouts.records import Record, Records, dtype, offsets, size

__all__ = ["RECORDS", "Record", "dtype", "offsets", "record", "size"]

RECORDS = Records(sizes)
record = RECORDS.record

RUNTIME = record(
    "Runtime",
    "what the device starts from; the control block of each module holds its address",
    """
    u64 directory         table of Directory: running CTAs
    u64 arena             first byte of the memory for slots
    u64 arena_bytes       its size
    u64 arena_next        bytes of it that slots have taken
    u64 class_slots       lists of slots, SLOTS_PER_CLASS for each size class
    u64 hints             slots that were released last, HINT_DEPTH for each shape and multiprocessor
    u64 hint_tops         how many were left at each of these places
    u64 table             table of TableEntry: findings, merged
    u64 ring              findings in host memory (RING_ENTRIES), then StandRecords (STANDS)
    u64 launches          counters of launches, one for each kernel
    u64 dropped_findings  findings for which table or ring had no place
    u64 dropped_ctas      CTAs that found no slot, and ran unchecked
    u64 evicted           checks that could not be decided because a record had been dropped
    u64 checked_ctas      CTAs that ran checked
    u64 foreign_ctas      CTAs in clusters larger than the module was instrumented for
    u32 ring_count        findings that asked for a place in the ring
    u32 abort             1: running kernels leave
    u32 class_count[CLASS_COUNT]  slots of each size class
    u32 cta_limit         CTAs to watch; 0: all
    u32 stolen_slots      slots that changed their shape
    u32 stands            warps that noted where they stood
    u32 stands_over       threads for which there was no StandRecord
    """,
)
DIRECTORY = record(
    "Directory",
    "a running CTA or cluster",
    """
    u64 key     grid and CTA; the lowest bit is 0 while the slot is acquired; 0: free
    u64 slot    address of its slot; NO_SLOT: it runs unchecked
    u32 exited  threads that have exited
    u32 pad[3]  -
    """,
)
TABLE_ENTRY = record(
    "TableEntry",
    "findings with the same key",
    """
    u64 key    word `key` (bits.py); 0: free
    u32 count  how many there were
    u32 ctas   CTAs that had one
    u32 low    complement of the lowest offset
    u32 high   the highest end
    u32 ring   -
    u32 pad    -
    """,
)
STAND = record(
    "StandRecord",
    "where lanes of a warp stood when the host stopped the launch",
    """
    u32 valid     1: complete
    u32 module    number of the module
    u32 entry     number of the kernel; NO_ENTRY where it is not known, in a function of a kernel without a slot
    u32 place     line of the PTX, or with STAND_AT_SITE a site
    u32 warp      in the CTA
    u32 lanes     mask
    u32 ctaid[3]  %ctaid
    u32 pad       -
    """,
)
# In parts: a variant of the runtime has the parts up to its own (`thread_bytes`).
THREAD = record(
    "Thread",
    "what a thread has done; all but range_address is cleared for the next thread",
    """
    u64 state          its epoch, and the epoch at which this barrier interval began; between calls of functions
    u32 full_barriers  whole-CTA barriers that it has passed
    u32 generation     of the named barrier that it arrived at last
    u32 warp_epoch     at the last barrier of the whole warp
    u32 released       epoch of its last fence of any scope, plus one
    u64 flags_read     flag cells that it has read since its last acquire, one bit each
    u64 syncs[WARP_SYNCS]  newest warp barriers, by mask: epoch, lanes
    u32 commits        cp.async groups that it has committed
    u32 retired        cp.async groups that its waits have retired
    u32 wait_count     waits ever kept in `waits`
    u32 lost_waits     groups that waits retired which have left `waits`
    u32 lost_groups    last group of the sources in lost_low .. lost_high, plus one
    u32 ranges         sources ever kept in range_address
    u64 lost_low       sources in flight that have lost their place: one interval
    u64 lost_high      its end
    u64 retires        variant without clocks: epoch of the last wait, what it retired, and what earlier waits retired
    u64 waits[WAIT_HISTORY]         last waits for groups: epoch, groups retired
    u64 range_address[COPY_RANGES]  last cp.async: address of the source
    u64 range_info[COPY_RANGES]     word `source` (bits.py)
    u32 bulk_commits   bulk groups that it has committed
    u32 bulk_retired   bulk groups that its waits without .read have retired
    u32 bulk_read      bulk groups that any of its waits have retired
    u32 matrix_commits     lane 0 of each warp: wgmma groups committed
    u32 matrix_retired     lane 0 of each warp: wgmma groups that its waits have retired
    u32 last_copy          place of its last small copy in the list of operations, plus one
    u32 matrix_wait_count  lane 0 of each warp: waits ever kept in Engine.matrix_waits
    u32 padding        -
    u32 tags           cp.async.mbarrier.arrive ever kept in copy_tags
    u32 waits_on       1: it has waited for bulk groups
    u64 relaxed_wait   a relaxed wait that no fence has followed: phase plus one, number of the mbarrier and RELAXED_CTA
    u64 bulk_waits[GROUP_WAITS]  last waits that retired bulk groups: epoch, groups
    u64 waiting        word `wait` (bits.py); 0: it does not wait
    u64 waiting_at     site of the wait, and the threads that it needs or REPORTED
    u32 inits_fenced   epoch of its last fence.mbarrier_init, plus one
    u32 cluster_generation  of the cluster barrier that it arrived at last
    u64 result_waits[GROUP_WAITS]  last waits without .read: epoch, groups
    u32 result_wait_count  waits ever kept there
    u32 result_waits_lost  groups of the waits that have left
    cluster u64 flags_read_narrow  as flags_read, of accesses of .cta scope
    cluster u32 released_wide    as released, of fences wider than .cta
    cluster u32 pad    -
    u64 copy_tags[COPY_TAGS]  last cp.async.mbarrier.arrive: groups before it, number of the mbarrier and phase
    """,
)
SLOT = record(
    "Slot",
    "the head of the shadow state of a CTA or cluster; the tables follow it (geometry.py)",
    """
    u64 writes       table of write records, word `record` (bits.py), one for each granule
    u64 reads        table of read entries: a row of barrier intervals, then a row for each warp of word `entry`
    u32 low          shared address of the CTA's first byte
    u32 bytes        of shared memory
    u32 row          bytes of a row of read entries
    u32 base         first epoch of this CTA: what is older belongs to an earlier one
    u64 state        the state that its threads begin with
    u64 owner        0: free
    u64 engine       record Engine
    u64 coarse       table of blocks
    u64 shape        word that identifies the geometry; 0: to be prepared
    u64 size         bytes
    u64 threads      records of threads, transposed; in the top byte the logarithm of the number of warps
    u64 vectors      clocks of the warps
    u64 deposits     clocks left at barriers
    u64 flags        clocks left by releases
    u64 directory    its place in the directory
    u64 runtime      record Runtime
    u64 sources[2*SOURCE_RANGES]  intervals that bound the sources of cp.async
    u64 result_low   bytes of global memory that bulk stores write: one interval, which kernels read in line
    u64 result_high  its end
    u64 flight_low   bytes of global memory that copies in flight use: one interval, which kernels read in line
    u64 flight_high  its end
    u32 thread_count  of a CTA
    u32 warp_count    of all CTAs
    u32 entry        number of the kernel
    u32 module       number of the module
    u32 latest       latest epoch of an exited thread
    u32 has_old      1: some write record has HIGH_OLD
    u32 found_any    1: some bit of `found`
    u32 read_scrub   -
    u32 full_epoch[2*MAX_CTAS]  by CTA and parity: latest epoch that came to a whole-CTA barrier
    u32 write_scrub  epoch at which all old write records were cleared
    u32 lanes_left   0; 1: the next CTA must clear lane masks; 2: an aligned instruction was divergent
    u32 epochs[MAX_WARPS]     epoch of each warp
    u32 row_scrub[MAX_WARPS]  epoch at which each row of read entries was cleared of old ones
    u64 named[NAMED_BARRIERS*MAX_CTAS]        each barrier: arrived threads, thread count, generation
    u32 named_sites[NAMED_BARRIERS*MAX_CTAS]  site of the first arrival
    u32 named_lanes[NAMED_BARRIERS*MAX_WARPS]  lanes that have arrived while others of their warp have not
    u32 exited[MAX_WARPS]     lanes that have exited
    u32 split[MAX_WARPS]      lanes with a word in `points`
    u64 points[32*MAX_WARPS]  of each lane: word `point` (bits.py)
    cluster u32 cta_bytes  bytes of shared memory of each CTA, rounded up
    cluster u32 cta_shift  logarithm of the number of warps of each CTA
    cluster u32 ctas       of this cluster
    cluster u32 home       multiprocessor to whose hints the slot returns
    cluster u32 visitors[MAX_CTAS]  of each CTA: ranks of the others that have accessed its memory
    cluster u32 gone[MAX_CTAS]      1: the CTA has exited
    cluster u32 exits[MAX_CTAS]     threads of each CTA that have exited
    cluster u32 started[MAX_WARPS]  of each warp: ranks of the CTAs that it knows to run
    cluster u64 cluster_waits[MAX_WARPS]     last wait at the cluster barrier: epoch, generation
    cluster u64 cluster_arrivals[MAX_WARPS]  last arrival there: epoch, generation
    cluster u64 visits[MAX_WARPS*MAX_CTAS]   last access to each CTA: site and lane, epoch
    u32 found[FOUND_WORDS]  entries of the table of findings that this CTA has counted in, one bit each
    """,
)
MBARRIER = record(
    "MBarrier",
    "a tracked mbarrier",
    """
    u64 state        word `state` (bits.py)
    u32 expected     arrivals of a phase
    u32 first_phase  its first phase
    u32 waited       phases that some thread has waited for
    u32 thread       that initialised it; after inval: that invalidated it
    u32 epoch        of that thread
    u32 site         of the init
    u32 life         Life
    u32 last_site    of the last init, inval or announcement of bytes
    u32 published    generation of the cluster barrier that published the init; 0: none
    u32 announced    site of the last expect-tx, and above bit 16 its thread
    """,
)
ENGINE = record(
    "Engine",
    "the asynchronous engines of a slot; mbarriers, their clocks and the list of operations follow it (geometry.py)",
    """
    u32 phase_base     first phase of this CTA's mbarriers
    u32 op_base        last operation of earlier CTAs
    u32 op_next        last number given to an operation
    u32 op_listed      operations that have been listed
    u32 op_count       places of the list in use
    u32 op_complete    up to this number all operations are listed
    u32 barrier_count  tracked mbarriers
    u32 blocked        registered threads, and above bit 16 exited ones
    u32 open           1: something could signal unseen, so no deadlock is proven
    u32 verdict        Verdict
    u32 elsewhere      threads registered at anything but the main barrier
    u32 weak_edges     blocks of non-synchronising edges in use
    u32 acquired[MAX_WARPS]  lanes that have observed more than their whole warp
    u32 fenced[MAX_WARPS]    epoch of the last proxy fence
    u32 at_main[MAX_WARPS]   lanes registered at the main barrier of their CTA
    u64 ended[MAX_WARPS]     an exited warp with unordered accesses: whole-CTA barriers passed plus one, base
    u64 first_end[FIRST_ENDS]  by CTA: complement of the least of these
    u32 full[2*CLOCK*MAX_CTAS]  clocks joined at whole-CTA barriers, two parities
    u32 keys[MBARRIERS]      offset of each mbarrier plus one
    u64 waiting[MAX_WARPS]   1: the warp has begun to leave
    u64 matrix_waits[MAX_WARPS*MATRIX_WAITS]  last waits for wgmma groups: epoch, groups
    u64 copies_done[4*MAX_WARPS]  last waits of whole warps for cp.async, see COPIES_DONE
    u64 matrix_seen[MAX_WARPS*MAX_WARPGROUPS]  wgmma groups of each warpgroup that the warp has observed, base
    u64 operands[2*MAX_WARPS*MATRIX_OPERANDS]  operands of wgmma that were found ordered
    u64 arrivals[2*MAX_WARPS*ARRIVALS]  last arrivals by mbarrier and parity: epoch, lanes; phase, number and ARRIVAL_MORE
    u32 over_up_to[MAX_WARPS]  up to this number all operations are complete for the warp
    u32 over[MAX_WARPS*OPERATIONS_OVER]  later operations that are complete for the warp
    """,
)
OPERATION = record(
    "OperationRecord",
    "an asynchronous operation on shared memory (runtime/operation.cuh)",
    """
    u64 range     first byte, end: offsets
    u32 sequence  its number; 0: the record is being written
    u32 kind      Operation and OperationFlags
    u32 site      number of the instruction
    u32 thread    issuer
    u32 source    first of the sites of the same source place
    u32 barrier   number of the mbarrier that signals completion
    u32 phase     that signals completion
    u32 group     that signals completion
    u64 shape     which bytes of the range it touches
    u64 shape2    the same, with SHAPE_ROWS or SHAPE_BOX
    u64 pad       -
    """,
)
RESULT = record(
    "ResultRecord",
    "a bulk store, as a writer of global memory (runtime/globals.cuh)",
    """
    u64 low       first byte
    u64 high      end
    u64 shape[3]  rows of a box: strides, strides, size of a row and counts
    u32 site      number of the instruction
    u32 thread    issuer
    u32 group     bulk group
    u32 flags     ResultFlags
    u64 live      its position in the ring and the base of the CTA
    """,
)
LOST = record(
    "LostResults",
    "results that have lost their record: an interval that keeps the complement of its lower end, so that zero is empty",
    """
    u64 low     complement of the first byte
    u64 high    end
    u32 thread  issuer plus one, or SEVERAL_THREADS
    u32 group   the last one
    """,
)
TENSOR = record(
    "TensorRange",
    "the bytes of a whole tensor",
    """
    u64 map   address of its map
    u64 low   first byte
    u64 high  end
    """,
)
FETCH = record(
    "FetchRecord",
    "a bulk load, as a reader of global memory (runtime/fetches.cuh)",
    """
    u64 source    address, or that of the tensor map
    u32 bytes     0: a tensor
    u32 site      number of the instruction
    u32 thread    issuer
    u32 barrier   number of the mbarrier that signals completion
    u32 phase     that signals completion
    u32 place[5]  coordinates in the tensor
    u64 live      its position in the ring and the base of the CTA
    u64 pad       -
    """,
)
MAP_USE = record(
    "MapUse",
    "a tensor copy that uses a map in global memory (runtime/maps.cuh)",
    """
    u64 map      address of the map
    u32 site     number of the instruction
    u32 kind     Operation
    u32 thread   issuer
    u32 barrier  number of the mbarrier that signals completion
    u32 phase    that signals completion
    u32 group    that signals completion
    u64 live     its position in the ring and the base of the CTA
    """,
)
FENCE = record(
    "FenceEvent",
    "a proxy fence that covers global memory",
    """
    u32 epoch  of the warp
    u32 lanes  that executed it
    u32 clock[MAX_WARPS]  of these lanes
    """,
)
MAP_STATE = record(
    "MapState",
    "a tensor map in global memory that was changed or acquired",
    """
    u64 map        address
    u32 born       base of the CTA plus one
    u32 pad        -
    u32 site       of the last change
    u32 thread     that changed it
    u32 epoch      of that thread
    u32 published  1: the change was also a release
    u32 acquired[MAX_WARPS]  acquire fences of each warp: epoch and lane
    """,
)
GLOBALS = record(
    "Globals",
    "copies between global and shared memory of a slot; cleared for the next CTA",
    """
    LostResults lost[LOST_RESULTS]  results without a record
    u64 written_low    complement of the first byte that a generic store has written
    u64 written_high   end
    u64 written_areas[2*WRITTEN_AREAS]  the same by site
    TensorRange tensors[TENSORS]  whole tensors, by address of the map
    u64 map_low        complement of the first byte of the maps in use
    u64 map_high       end
    u32 map_released[MAX_WARPS]  last release fence for maps: epoch and lane
    u32 fence_count[MAX_WARPS]   fences ever kept
    u64 polls[MAX_WARPS]         last strong load of global memory: epoch, site and lane
    u64 fetch_areas[2*FETCH_AREAS]  intervals that bound the sources of bulk loads, by site
    u32 fetch_over[MAX_WARPS]    up to this position all loads are complete for the warp
    u32 result_count   results ever kept
    u32 use_count      uses of maps ever kept
    u32 uses_lost      1: a use that may be in flight has lost its record
    u32 fetch_count    loads ever kept
    u32 fetches_lost   1: a load that may be in flight has lost its record
    u32 pad[3]         -
    """,
)
GLOBAL_TABLES = record(
    "GlobalTables",
    "tables that are not cleared between CTAs: each entry contains its epoch",
    """
    ResultRecord results[RESULTS]  ring of bulk stores
    u64 written[2*WRITTEN]  cells with generic stores: address; epoch, site and thread
    FenceEvent fences[MAX_WARPS*FENCE_EVENTS]  last fences of each warp
    FetchRecord fetches[FETCHES]  ring of bulk loads
    MapUse uses[MAP_USES]  ring of uses
    MapState maps[MAPS]  by address of the map
    """,
)
