"""The layout of every shadow table and record, written once.

`header()` renders the C++ header that the shadow runtime includes; `dtype()` gives the NumPy view that the host decodes with. Neither
side has a second copy: a new field appears in both, and the C++ side asserts the offsets.

Bit budgets (runtime/access.cuh says why these widths are enough):

write cell, 64 bits, one per granule of shared memory
    [63:44] epoch of the writing warp, low WRITE_EPOCH_BITS   [43:39] warp   [38:34] lane   [33] async   [32] old
    [31:16] site   [15] atomic   [14] uninitialised-read marker   [13:0] cp.async group, or a hash of the value stored
read cell, 32 bits, one per granule and warp
    [31:20] epoch of the reading warp, low READ_EPOCH_BITS   [19:7] site   [6] atomic   [5] several lanes   [4:0] lane
In clusters, thread numbers run through all CTAs: the warp number takes 1 to 4 bits of the epoch in a write cell.

Not here: the site table, which never leaves the host (instrument/sites.py).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

MAX_WARPS = 32
DIRECTORY_ENTRIES = 1 << 15
CLASS_COUNT = 70
CLASS_SHIFT = 13  # the smallest slot has 8 KiB, the largest 1.25 GiB; four sizes per power of two
SLOTS_PER_CLASS = 8192
# Recently released slots, by shape (hashed) and multiprocessor. No multiprocessor holds more than 32 CTAs.
HINT_SHAPES = 32
HINT_PLACES = 256
HINT_DEPTH = 32
TABLE_ENTRIES = 4096
RING_ENTRIES = 4096
STANDS = 64  # of a launch that is told to stop: places of warps that are kept, behind the ring; the other threads are counted
LAUNCH_COUNTERS = 8192
NAMED_BARRIERS = 18  # per CTA: 16 of the ISA, one for the cluster barrier (in the first CTA), one for alignment
BARRIER_GENERATIONS = 4
WAIT_HISTORY = 4
WARP_SYNCS = 4
COPY_RANGES = 16
SOURCE_RANGES = 4  # intervals that bound the sources of a CTA's copies
FLAG_CELLS = 64  # one bit each in Thread.flags_read
# Asynchronous engines: tracked mbarriers of one CTA, listed operations, bytes of a coarse block.
MBARRIERS = 64  # of one CTA; clusters have more (`counts`)
OPERATIONS = 512
BLOCK_BYTES = 128
MAX_WARPGROUPS = 8
OPERATIONS_OVER = 8  # per warp: operations noted as complete
GROUP_WAITS = 4
MATRIX_OPERANDS = 8  # per warp: operands recently found ordered
MATRIX_WAITS = 16  # per warp: a producer may lag by this many stages
COPY_TIES = 8
ARRIVALS = 32  # per warp: its last arrivals at mbarriers, by barrier and parity
# Copies between global and shared memory, of one CTA (runtime/globals.cuh).
RESULTS = 128  # bulk stores whose results in global memory are separate records
LOST_RESULTS = 4  # threads whose older results are merged, into one interval each
WRITTEN = 2048  # cells of 16 bytes of global memory with generic stores, by address
WRITTEN_AREAS = 4  # intervals that bound these stores, by site
TENSORS = 8  # tensor maps whose whole range is cached, by address of the map
FENCE_EVENTS = 4  # per warp: its last proxy fences for global memory
FETCHES = 64  # bulk loads whose source in global memory is tracked
FETCH_AREAS = 4  # intervals that bound the sources of bulk loads without a tensor map, by site
MAP_USES = 64  # tensor copies whose map in global memory is tracked
MAPS = 32  # changed or acquired tensor maps, by address
SITE_LIMIT = (1 << 16) - 1
READ_SITE_LIMIT = (1 << 12) - 1


class Kind(enum.IntEnum):
    """Finding kinds as the device writes them. Their names are the identifiers of the catalogue (SEMANTICS section 8)."""

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


class Hazard(enum.IntEnum):
    """Order in which the two conflicting accesses were observed."""

    NONE = 0
    RAW = 1
    WAR = 2
    WAW = 3


@enum.unique
class Reason(enum.IntEnum):
    """The missing edge; selects the wording of `missing` and `fix`."""

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
    AT_EXIT = 26
    OTHER_ISSUER = 27  # the waiting thread did not issue the operation (R-B4)
    MISALIGNED = 28
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
    MAP_NOT_RELEASED = 38
    MAP_CHANGED = 39  # a tensor map is changed while a copy that uses it is in flight (R-B7)
    POLL_NO_FENCE = 40  # --policy isa: a bulk load after a strong load of a flag in global memory (D14)


STAND_AT_SITE, NO_ENTRY = 1 << 31, (1 << 32) - 1
FLAG_SAME_WARP = 1
FLAG_SAME_VALUE = 2
FLAG_OTHER_ASYNC = 4
FLAG_OTHER_ATOMIC = 8
FLAG_GLOBAL = 16  # the bytes are in global memory, at `address`


class Operation(enum.IntEnum):
    """The kind of an operation in flight. Bit 0: it writes shared memory."""

    BULK_STORE = 2
    BULK_LOAD = 3
    WGMMA = 4
    STORE_ASYNC = 5
    COPY_ASYNC = 7
    BULK_REDUCE = 9
    BULK_SOURCE = 10  # the source of a copy to another CTA


@dataclass(frozen=True)
class Field:
    """One member: C++ scalar type, name, number of elements (1: a scalar)."""

    type: str
    name: str
    count: int = 1


@dataclass(frozen=True)
class Struct:
    """A record in device memory. Members are naturally aligned with no hidden padding (asserted on both sides)."""

    name: str
    fields: tuple[Field, ...]


_SIZES = {"u64": 8, "u32": 4, "u8": 1}


def _struct(name: str, text: str) -> Struct:
    fields = []
    for item in text.split(";"):
        if not (words := item.split()):
            continue
        base, _, count = words[1].partition("[")
        fields.append(Field(words[0], base, int(count.rstrip("]")) if count else 1))
    return Struct(name, tuple(fields))


@cache
def counts(ctas: int) -> dict[str, int]:
    """Numbers that grow with the largest cluster that a variant of the runtime supports (1: none)."""
    warps, mbarriers = MAX_WARPS * ctas, min(MBARRIERS * ctas, 4 * MBARRIERS)
    # Blocks of a clock, one entry per warp each: epochs; epochs that have passed a proxy fence (in clusters one block for memory of even
    # ranks and one for odd ranks); in clusters three more of epochs learnt through non-synchronising edges (wait too narrow, arrival too
    # narrow, relaxed). Then one entry per mbarrier: observed phases.
    blocks = 6 if ctas > 1 else 2
    return {"MAX_CTAS": ctas, "MAX_WARPS": warps, "MBARRIERS": mbarriers, "CLOCK": blocks * warps + mbarriers}


_CLUSTER = """u32 cta_bytes; u32 cta_shift; u32 ctas; u32 home; u32 visitors[{ctas}]; u32 gone[{ctas}]; u32 exits[{ctas}];
    u32 started[{warps}]; u64 cluster_waits[{warps}]; u64 cluster_arrivals[{warps}]; u64 visits[{visits}];"""


def slot(ctas: int) -> Struct:
    """The head of a slot, for clusters of up to `ctas` CTAs."""
    warps = counts(ctas)["MAX_WARPS"]
    cluster = _CLUSTER.format(ctas=ctas, warps=warps, visits=warps * ctas) if ctas > 1 else ""
    return _struct(
        "Slot",
        f"""u64 writes; u64 reads; u32 low; u32 bytes; u32 row; u32 base; u64 state; u64 owner; u64 engine; u64 coarse; u64 shape; u64 size;
        u64 threads; u64 vectors; u64 deposits; u64 flags; u64 directory; u64 runtime; u64 sources[{2 * SOURCE_RANGES}];
        u64 result_low; u64 result_high; u64 flight_low; u64 flight_high;
        u32 thread_count; u32 warp_count; u32 entry; u32 module; u32 latest; u32 has_old; u32 found_any; u32 read_scrub;
        u32 full_epoch[{2 * ctas}]; u32 write_scrub; u32 lanes_left; u32 epochs[{warps}]; u32 row_scrub[{warps}];
        u64 named[{NAMED_BARRIERS * ctas}]; u32 named_sites[{NAMED_BARRIERS * ctas}]; u32 named_lanes[{NAMED_BARRIERS * warps}];
        u32 exited[{warps}]; u32 split[{warps}]; u64 points[{32 * warps}]; {cluster} u32 found[{TABLE_ENTRIES // 32}]""",
    )


def engine(ctas: int) -> Struct:
    """The asynchronous engines of a slot, for clusters of up to `ctas` CTAs."""
    warps, mbarriers, clock = (counts(ctas)[name] for name in ("MAX_WARPS", "MBARRIERS", "CLOCK"))
    return _struct(
        "Engine",
        f"""u32 phase_base; u32 op_base; u32 op_next; u32 op_listed; u32 op_count; u32 op_complete;
        u32 barrier_count; u32 blocked; u32 open; u32 verdict; u32 elsewhere; u32 weak_edges;
        u32 acquired[{warps}]; u32 fenced[{warps}]; u32 at_main[{warps}]; u64 ended[{warps}]; u64 first_end[{max(ctas, 2)}];
        u32 full[{2 * clock * ctas}]; u32 keys[{mbarriers}]; u64 waiting[{warps}];
        u64 matrix_waits[{warps * MATRIX_WAITS}]; u64 copies_done[{4 * warps}];
        u64 matrix_seen[{warps * MAX_WARPGROUPS}]; u64 operands[{warps * MATRIX_OPERANDS * 2}];
        u64 arrivals[{warps * ARRIVALS * 2}]; u32 over_up_to[{warps}]; u32 over[{warps * OPERATIONS_OVER}]""",
    )


def offsets(struct: Struct) -> dict[str, int]:
    """Byte offset of each member."""
    result, position = {}, 0
    for field in struct.fields:
        size = _SIZES[field.type]
        if position % size:
            raise ValueError(f"{struct.name}.{field.name} is not naturally aligned (offset {position})")
        result[field.name] = position
        position += size * field.count
    return result


def size(struct: Struct) -> int:
    """Size in bytes; a multiple of 8."""
    return sum(_SIZES[field.type] * field.count for field in struct.fields)


RUNTIME = _struct(
    "Runtime",
    f"""u64 directory; u64 arena; u64 arena_bytes; u64 arena_next; u64 class_slots; u64 hints; u64 hint_tops;
    u64 table; u64 ring; u64 launches;
    u64 dropped_findings; u64 dropped_ctas; u64 evicted; u64 checked_ctas; u64 foreign_ctas;
    u32 ring_count; u32 abort; u32 class_count[{CLASS_COUNT}]; u32 cta_limit; u32 stolen_slots;
    u32 stands; u32 stands_over""",
)
DIRECTORY = _struct("Directory", "u64 key; u64 slot; u32 exited; u32 pad[3]")
TABLE_ENTRY = _struct("TableEntry", "u64 key; u32 count; u32 ctas; u32 low; u32 high; u32 ring; u32 pad")
FINDING = _struct(
    "FindingRecord",
    """u32 valid; u32 module; u32 kind; u32 hazard; u32 reason; u32 flags; u32 site; u32 other_site; u32 entry; u32 table;
    u32 ctaid[3]; u32 ntid[3]; u32 thread; u32 other_thread; u32 offset; u32 bytes; u32 epoch; u32 other_epoch;
    u32 group; u32 commits; u32 retired; u32 shared_bytes; u64 address; u32 operation; u32 barrier; u32 phase; u32 own_operation;
    u64 barrier_state; u32 barrier_expected; u32 parity; u32 cta_bytes; u32 cta_threads; u32 cluster[3]; u32 rank""",
)
# Where lanes of a warp stood when they were told to stop. `place`: a line of the PTX, or with STAND_AT_SITE a site. `entry`: NO_ENTRY
# where it is not known, in a function of a kernel without a slot.
STAND = _struct("StandRecord", "u32 valid; u32 module; u32 entry; u32 place; u32 warp; u32 lanes; u32 ctaid[3]; u32 pad")
# In parts, of which a variant of the runtime has those up to its own (`thread_bytes`). All but `range_address` is cleared for the next
# thread.
_THREAD = f"""u64 state;
    u32 full_barriers; u32 generation; u32 warp_epoch; u32 released; u64 flags_read; u64 syncs[{WARP_SYNCS}];
    u32 commits; u32 retired; u32 wait_count; u32 lost_waits; u32 lost_groups; u32 ranges; u64 lost_low; u64 lost_high; u64 retires;
    u64 waits[{WAIT_HISTORY}]; u64 range_address[{COPY_RANGES}]; u64 range_info[{COPY_RANGES}];
    u32 bulk_commits; u32 bulk_retired; u32 bulk_read; u32 matrix_commits; u32 matrix_retired; u32 last_copy; u32 matrix_wait_count;
    u32 copied; u32 ties; u32 waits_on; u64 relaxed_wait; u64 bulk_waits[{GROUP_WAITS}]; u64 waiting; u64 waiting_at; u32 inits_fenced;
    u32 cluster_generation; u64 result_waits[{GROUP_WAITS}]; u32 result_wait_count; u32 result_waits_lost;"""


def thread(ctas: int) -> Struct:
    """The record of a thread, for clusters of up to `ctas` CTAs."""
    cluster = "u64 flags_read_near; u32 released_wide; u32 pad;" if ctas > 1 else ""
    return _struct("Thread", f"{_THREAD} {cluster} u64 copy_ties[{COPY_TIES}]")


THREAD = thread(1)
MBARRIER = _struct(
    "MBarrier",
    """u64 state; u32 expected; u32 first_phase; u32 waited; u32 thread; u32 epoch; u32 site; u32 life; u32 last_site;
    u32 published; u32 pad""",
)
OPERATION = _struct(
    "OperationRecord",
    """u64 range; u32 sequence; u32 kind; u32 site; u32 thread; u32 source; u32 barrier; u32 phase; u32 group; u64 shape; u64 shape2;
    u64 pad""",
)
RESULT = _struct(
    "ResultRecord",
    """u64 low; u64 high; u64 shape[3]; u32 site; u32 thread; u32 group; u32 flags; u64 live""",
)
# An interval keeps the complement of its lower end, so that zero is the empty interval.
LOST = _struct("LostResults", "u64 low; u64 high; u32 thread; u32 group")
TENSOR = _struct("TensorRange", "u64 map; u64 low; u64 high")
FETCH = _struct(
    "FetchRecord", "u64 source; u32 bytes; u32 site; u32 thread; u32 barrier; u32 phase; u32 place[5]; u64 live; u64 pad"
)
MAP_USE = _struct("MapUse", "u64 map; u32 site; u32 kind; u32 thread; u32 barrier; u32 phase; u32 group; u64 live")


def _globals(ctas: int) -> tuple[Struct, ...]:
    """Records of the global-memory sides of copies."""
    warps = counts(ctas)["MAX_WARPS"]
    fence = _struct("FenceEvent", f"u32 epoch; u32 lanes; u32 clock[{warps}]")
    state = _struct("MapState", f"u64 map; u32 born; u32 pad; u32 site; u32 thread; u32 epoch; u32 published; u32 acquired[{warps}]")
    head = _struct(
        "Globals",
        f"""u64 lost[{3 * LOST_RESULTS}]; u64 written_low; u64 written_high; u64 written_areas[{2 * WRITTEN_AREAS}];
        u64 tensors[{3 * TENSORS}]; u64 map_low; u64 map_high; u32 map_released[{warps}]; u32 fence_count[{warps}];
        u64 polls[{warps}]; u64 fetch_areas[{2 * FETCH_AREAS}]; u32 fetch_over[{warps}];
        u32 result_count; u32 use_count; u32 uses_lost; u32 fetch_count; u32 fetches_lost; u32 pad[3]""",
    )
    # Tables that are not cleared between CTAs: each entry contains its epoch.
    tables = _struct(
        "GlobalTables",
        f"""u64 results[{RESULTS * size(RESULT) // 8}]; u64 written[{2 * WRITTEN}]; u64 fences[{warps * FENCE_EVENTS * size(fence) // 8}];
        u64 fetches[{FETCHES * size(FETCH) // 8}]; u64 uses[{MAP_USES * size(MAP_USE) // 8}]; u64 maps[{MAPS * size(state) // 8}]""",
    )
    return (RESULT, LOST, TENSOR, FETCH, MAP_USE, fence, state, head, tables)


SLOT = slot(1)


def structs(ctas: int = 1) -> tuple[Struct, ...]:
    """All records, for clusters of up to so many CTAs."""
    return (RUNTIME, DIRECTORY, TABLE_ENTRY, FINDING, STAND, thread(ctas), slot(ctas), MBARRIER, engine(ctas), OPERATION, *_globals(ctas))


def dtype(struct: Struct) -> np.dtype[np.void]:
    """The NumPy dtype of one record."""
    members: list[tuple[str, npt.DTypeLike] | tuple[str, npt.DTypeLike, tuple[int, ...]]] = []
    for field in struct.fields:
        kind = f"<u{_SIZES[field.type]}"
        members.append((field.name, kind) if field.count == 1 else (field.name, kind, (field.count,)))
    result: np.dtype[np.void] = np.dtype(members)
    return result


def _constants(ctas: int) -> dict[str, int]:
    names = """DIRECTORY_ENTRIES CLASS_COUNT CLASS_SHIFT SLOTS_PER_CLASS HINT_SHAPES HINT_PLACES HINT_DEPTH
        TABLE_ENTRIES RING_ENTRIES STANDS STAND_AT_SITE NO_ENTRY NAMED_BARRIERS LAUNCH_COUNTERS
        BARRIER_GENERATIONS WAIT_HISTORY WARP_SYNCS COPY_RANGES SOURCE_RANGES FLAG_CELLS READ_SITE_LIMIT FLAG_SAME_WARP FLAG_SAME_VALUE
        FLAG_OTHER_ASYNC FLAG_OTHER_ATOMIC FLAG_GLOBAL OPERATIONS OPERATIONS_OVER BLOCK_BYTES
        MAX_WARPGROUPS GROUP_WAITS MATRIX_WAITS MATRIX_OPERANDS COPY_TIES ARRIVALS RESULTS LOST_RESULTS
        WRITTEN WRITTEN_AREAS TENSORS FENCE_EVENTS FETCHES FETCH_AREAS MAP_USES MAPS"""
    constants = {name: globals()[name] for name in names.split()} | counts(ctas)
    for prefix, members in (("KIND", Kind), ("HAZARD", Hazard), ("REASON", Reason), ("OPERATION", Operation)):
        constants |= {f"{prefix}_{member.name}": int(member) for member in members}
    return constants


def _render_struct(struct: Struct) -> str:
    lines = [f"struct {struct.name} {{"]
    lines += [f"    {f.type} {f.name}{f'[{f.count}]' if f.count > 1 else ''};" for f in struct.fields]
    lines.append("};")
    lines.append(f"static_assert(sizeof({struct.name}) == {size(struct)}, \"{struct.name}\");")
    lines += [f"static_assert(offsetof({struct.name}, {name}) == {at}, \"{struct.name}.{name}\");" for name, at in offsets(struct).items()]
    return "\n".join(lines)


def header(ctas: int = 1) -> str:
    """C++ text of `layout.cuh`: types, constants, structs and their assertions. `ctas`: size of the largest cluster."""
    lines = [
        "// Generated from consan/instrument/layout.py; do not edit.",
        "typedef unsigned long long u64; typedef unsigned int u32; typedef unsigned char u8;",
        # NVRTC up to 13.0 lacks __builtin_offsetof. Its front end's own intrinsic is a constant expression in all versions.
        "#undef offsetof",
        "#define offsetof(type, member) ((u64)__INTADDR__(&(((type *)0)->member)))",
    ]
    lines += [f"#define {name} {value}u" for name, value in _constants(ctas).items()]
    return "\n".join([*lines, *map(_render_struct, structs(ctas))]) + "\n"
