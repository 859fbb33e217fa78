"""Records and numbers that the host and the compiled checker exchange. The C++ side (source/layouts.hpp) is made from these tables."""

from __future__ import annotations

import enum

from consan.checker.compiled import expanding
from consan.checker.compiled.concurrent_launches import PeerFlagKind, RankSets, RetainedFlag
from consan.instrument import surfaces, textures
from consan.instrument.effects import LANES
from consan.instrument.effects.cpp import EventKind
from consan.instrument.effects.flags import Flag, MatrixRow
from consan.instrument.findings import UNORDERED, FindingFlags, Hazard, Kind, Operation, Parted, Reason
from consan.instrument.layouts.cpp import enumeration, structure
from consan.instrument.layouts.records import Records
from consan.instrument.record.text import templates

RECORDS = Records()
record = RECORDS.record


class Status(enum.IntEnum):
    """How a replay ended."""

    OK = 0
    STUCK = 1  # some threads could not continue
    CORRUPT = 2  # a word that no template explains
    FULL = 3  # a log without room
    TOO_MANY = 4  # more findings than there is room for
    UNDEFINED = 5  # up to a divergent .aligned instruction
    SEAL_FAILED = 6  # threads met others that have copies in flight at a seal (source/barriers/seals.hpp)
    HALTED = 7  # the host has ended it


class Level(enum.IntEnum):
    """How much is taken for an edge (source/order/scopes.hpp)."""

    EXACT = 0
    WAIT_SCOPES = 1  # waits of any scope
    SCOPES = 2  # releases of any scope too


class Reading(enum.IntEnum):
    """How the ISA is read (SEMANTICS 9)."""

    USUAL = 0
    BY_THE_ISA = 1  # --policy isa (D1, D2)
    STRICT = 2  # the same, and no weaker fence is taken for a fence.sc (D17)


class RestrictedFences(enum.IntEnum):
    """Which fences with .sync_restrict a replay takes for whole ones (R-SR1); numbers behind OF_CTA stand for the CTAs of a cluster."""

    ALL = 0
    NONE = 1
    OF_CTA = 2


class Decides(enum.IntFlag):
    """Words that are not hashed, and decide findings."""

    BY_ADDRESS = 1  # the addresses of tensor maps, compared with those of writes
    BY_CLIP = 2  # how much of a box lies inside its tensor
    BY_VALUE = 4  # whether stored values are equal


class StoppedKind(enum.IntEnum):
    """The last step of a stopped thread."""

    GONE = 0  # it has exited
    WAITS = 1  # for other threads
    POLLS = 2  # it has left a loop whose last event is a strong read
    FREE = 3


_OTHER_REASONS = {"NONE": "NO_REASON", "NO_COMPLETE": "NO_COMPLETE_REASON"}  # the name in C++ of those that another enumeration has, too
EVENT = record(
    "Event",
    "one event of a template (instrument/effects)",
    "\n".join(f"i32 {name} -" for name in templates.EVENT_DTYPE.names or ()),
)
BLOCK = record(
    "Block",
    "a template: its events in order",
    """
    i32 first   its first event
    i32 events  how many there are
    i32 words   of a thread that executes it
    """,
)
RECORD = record(
    "Record",
    "a finding, merged by kind, reason and unordered pair of sites",
    """
    u32 kind           Kind
    u32 hazard         Hazard
    u32 reason         Reason
    u32 flags          FindingFlags
    u32 site           number of the instruction
    u32 other_site     of the other instruction
    u32 thread         that executed it
    u32 other_thread   -
    u32 offset         first byte, or column
    u32 bytes          how many
    u32 number         of a barrier, of a lane, of columns
    u32 came           mask of the lanes that came
    u32 others         mask of those that did not
    u32 exited         mask of those of them that have exited
    u32 how            Parted
    u32 operation      Operation of the other side
    u32 own_operation  Operation of this side
    u32 group          of the operation
    u32 commits        groups that its thread has committed
    u32 retired        groups that waits of its thread have retired
    u32 flag_write     the instruction that writes the flag between the two accesses
    u32 flag_read      the instruction that reads it
    u32 fence          the fence or release before the write
    u32 narrow_fence   a fence between two CTAs whose scope may be too narrow
    u32 address_low    of bytes in global memory
    u32 address_high   -
    u32 place          of an mbarrier: its offset plus one; 0: none
    u32 phase          counted from its init
    u32 expected       arrivals of a phase
    u32 state_low      of the mbarrier
    u32 state_high     -
    u32 count          how often
    u32 low            the first of all bytes that were merged
    u32 high           the end of these
    u32 first_reader   the first of the threads that read, of all findings that were merged; of all threads, if both sides may
    u32 last_reader    the last of them
    u32 lane_bits        bits in which the numbers of the two lanes differ, of all that were merged
    u32 cluster           of a launch
    u32 threads        that wait
    u32 lanes          of these, in the first warp
    u32 arrived        threads that have arrived
    u32 waited_site    of a missing wait: the last wait of its thread at an mbarrier; 0: none
    u32 waited_place   its offset plus one
    u32 waited_phase   that was over then; ~0: the one before the first
    u32 signal_site    the instruction that ended that phase
    u32 signal_thread  that executed it
    u32 commit         of a tcgen05 operation: a number of what is asked of its commits (source/asynchronous/issuers.hpp)
    """,
)
RETAINED = record(
    "RetainedAccess",
    "an access to global memory that is retained for the comparison with other launches",
    """
    u64 address  its first byte
    u32 bytes    how many
    u32 cluster     of the launch
    u32 thread   of the cluster
    u32 site     number of the instruction
    u32 value    that it stores; of a plain read: how many others it stands for, of the same bytes by other threads
    u32 element  bytes of an element
    u32 scope    of a strong access
    u32 flags    RetainedFlag
    u32 begins   of several ranks: RankSets of those before it; else the set of the acquires before it (PeerFlag)
    u32 ends     those that end behind it; else the set of the releases behind it
    """,
)
PEER_FLAG = record(
    "PeerFlag",
    "a strong access of .sys scope, which may synchronise with another GPU",
    """
    u64 address   -
    u64 old       the value that it has read
    u64 first     what it stores or adds, or compares with
    u64 second    what it stores if these are equal
    u32 bytes     -
    u32 operation FlagOrder::Operation
    u32 cluster   of the launch
    u32 thread    of the cluster
    u32 site      number of the instruction
    u32 flags     PeerFlagKind
    u32 acquired  its number, if the thread has acquired it; else 0
    u32 released  its number, if it releases something; else 0
    u32 begins    the set of the acquires before it
    u32 scope     -
    """,
)
STOPPED = record(
    "Stopped",
    "how a thread stood that the host has stopped",
    """
    u64 address  of the bytes that it reads; with its highest bit, in shared memory
    u64 low      their value
    u64 high     -
    u32 bytes    how many
    u32 site     number of the instruction
    u32 kind     StoppedKind
    u32 latest   of shared memory: no strong access has written the bytes after the read
    """,
)
INPUT = record(
    "Input",
    "the history of a CTA, or of the CTAs of a cluster",
    """
    *Block blocks        templates by number
    *Event events        of all templates
    *u32 log             of the CTAs of the cluster, by rank: for each warp `lines` lines of 32 words
    *mut:Record records  room for findings
    *mut:u32 positions      of each thread: where it positions, if it has not exited; null: not wanted
    *u32 halt            not zero once the host wants no more; null: it always does
    u64 lines            of each warp
    u32 block_count      templates
    u32 threads          of a CTA
    u32 window           address of the first byte of shared memory
    u32 shared_bytes     of a CTA
    u32 descending       the second of the two orders
    u32 capacity         findings for which there is room
    u32 ctas             of the cluster
    u32 cta_threads      numbers of threads that each CTA takes
    u32 cta_bytes        numbers of bytes that each CTA takes
    u32 level            Level
    u32 isa              Reading
    u32 open_block       where a fault ended the launch: a block that is not closed; 0: none
    u32 open_events      events of it that happened
    u32 closed           the launch did not end, and all words of a block are there that has its number
    u32 every            iterations that repeat are replayed each time (source/cluster/repeats.hpp)
    u32 restricted       RestrictedFences: of OF_CTA only findings in the shared memory of that CTA are reported
    """,
)
OUTPUT = record(
    "Output",
    "the result of the replay of a history",
    """
    u32 status       Status
    u32 records      findings
    u32 stuck_lane   threads that have exited, if some could not continue
    u32 by_address   Decides
    u32 overtaken    a wait passed for a phase that was over, though another one had ended since: a thread that polls may wait for ever
    u32 proven       a deadlock
    u32 repeats      periods that were not replayed (source/cluster/repeats.hpp)
    u32 passed       accesses that were counted and not replayed: they are apart (source/cluster/disjoint.hpp)
    u64 lane_events  -
    """,
)
CLUSTER_LOG = record(
    "ClusterLog",
    "the log of a cluster of a launch; a CTA by itself is one",
    """
    *u32 log   -
    u64 lines  of each warp
    """,
)
MEMORY_BEFORE = record(
    "MemoryBefore",
    "what memory held before a launch",
    """
    *u8 data     -
    u64 address  of the first byte
    u64 bytes    -
    """,
)
TEXTURE_MEMORY = record(
    "TextureMemory",
    "the memory of a texture object",
    """
    u64 handle    -
    u64 address   of the first element
    u64 bytes     of all elements; 0: they have no addresses
    u32 element   bytes of an element
    u32 numbered  elements lie one behind the other
    u32 known     the host knows the object
    u32 unused    -
    """,
)
GRID_INPUT = record(
    "GridInput",
    "a launch",
    """
    Input one             what all clusters share
    *ClusterLog clusters        by number
    *mut:Record of_clusters  findings in shared memory, if threads may synchronise through memory; null: each cluster is replayed by itself
    *mut:RetainedAccess retained  null: not wanted
    *mut:PeerFlag peer_flags flags of other GPUs; null: not wanted
    *mut:u32 peer_sets  the sets of their numbers: for each, how many it has, and these
    *mut:u32 begun_before_end  of each rank: RankSets of those before its end; null: not wanted
    *mut:u32 positions       of a launch that the host has stopped, by thread; else null
    *mut:Stopped stops    -
    *TextureMemory textures  textures whose memory the launch has asked for
    *MemoryBefore before  where it is known
    u64 rank_memory       where symmetric memory of the ranks begins; 0: there is none
    u32 count             clusters
    u32 synced            threads may synchronise through memory
    u32 capacity          findings for which there is room
    u32 most              accesses that the checker holds at a time
    u32 retained_capacity     accesses for which `retained` has room
    u32 rank_clusters        clusters of a rank, if there are several; else 0
    u32 texture_count     textures
    u32 before_count      -
    u32 peer_capacity     flags for which `peer_flags` has room
    u32 peers             other GPUs may write flags
    u32 peer_sets_capacity  words for which `peer_sets` has room
    u32 rank_stride       bytes from the symmetric memory of a rank to that of the next
    """,
)
GRID_OUTPUT = record(
    "GridOutput",
    "the result of the replay of a launch",
    """
    u32 status          Status
    u32 records         findings in global memory
    u32 of_clusters        findings in shared memory
    u32 stuck           clusters that could not be replayed to their end
    u32 contradictions  the order of the accesses to a flag is not certain
    u32 full            more accesses met than the checker holds
    u32 unknown         the bytes of a tensor copy are not known
    u32 narrow          some scope excludes other CTAs
    u32 retained_full       not all accesses were retained
    u32 waited          a thread has executed griddepcontrol.wait
    u32 unseen          an access that the log does not name
    u32 aliased         a launch has surfaces of several handles, and writes one
    u32 fetched         elements that are fetched may be among those that the launch writes
    u32 peer_flags      flags of other GPUs
    u32 peer_flags_full      there were more, or more sets
    u32 peer_sets       words of the sets
    u64 texture         the handle of a texture object whose memory is asked for, with bit 32 set; 0: there is none
    u64 lane_events     -
    u64 retained            accesses that were retained
    u64 accesses        to global memory
    u64 compared        those of bytes that several threads touch, and one writes
    """,
)
EXPAND_STEP = record(*expanding.STEP)
EXPAND_MEMORY = record(*expanding.MEMORY)
EXPANSION = record(*expanding.EXPANSION)
SWEEP_INPUT = record(*expanding.SWEEP)
_ENUMERATIONS = (
    enumeration("ExpandCode", "u32", expanding.StepCode, "STEP_{}".format),
    enumeration("ExpandType", "u32", expanding.StepType, "AS_{}".format),
    enumeration("ExpandSlot", "u32", expanding.StepSlot, "SLOT_{}".format),
    enumeration("ExpandEnd", "u32", expanding.ExpansionEnd, "EXPANSION_{}".format),
    enumeration("EventKind", "i32", EventKind),
    enumeration("EventFlag", "i32", Flag),
    enumeration("MatrixRow", "u32", MatrixRow, "ROW_OF_{}".format),
    enumeration("Kind", "u32", Kind),
    enumeration("Hazard", "u32", Hazard, lambda name: {"NONE": "NO_HAZARD"}.get(name, name)),
    enumeration("Reason", "u32", Reason, lambda name: _OTHER_REASONS.get(name, name)),
    enumeration("FindingFlag", "u32", FindingFlags),
    enumeration("OperationKind", "u32", Operation, "{}_OPERATION".format),
    enumeration("RetainedFlag", "u32", RetainedFlag, "RETAINED_{}".format),
    enumeration("PeerFlagKind", "u32", PeerFlagKind, "PEER_{}".format),
    enumeration("RankSets", "u32", RankSets, "RANKS_{}".format),
    enumeration("Parted", "u32", Parted),
    enumeration("Status", "u32", Status),
    enumeration("Level", "u32", Level),
    enumeration("Reading", "u32", Reading),
    enumeration("RestrictedFences", "u32", RestrictedFences, "{}_RESTRICTED".format),
    enumeration("Decides", "u32", Decides),
    enumeration("StoppedKind", "u32", StoppedKind, "STOPPED_{}".format),
)
_NUMBERS = {"LANES": LANES, "END": templates.END, "STOP": templates.STOP, "LEFT": templates.LEFT, "UNORDERED": UNORDERED}
_NUMBERS |= {"SURFACE_HANDLE": surfaces.HANDLE, "TEXTURE_HANDLE": textures.HANDLE}


def header() -> str:
    """The text of layouts.hpp, which types.hpp includes."""
    numbers = [f"constexpr u32 {name} = {value}u;" for name, value in _NUMBERS.items()]
    structures = [line for each in RECORDS.values() for line in structure(each)]
    return "\n".join(["// Generated from consan/checker/compiled/layouts.py; do not edit.", *numbers, *_ENUMERATIONS, *structures]) + "\n"
