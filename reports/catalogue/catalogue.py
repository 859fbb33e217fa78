"""The catalogue of findings (kinds: instrument/SEMANTICS.md): title, severity, and the words for what is missing and how to fix it.

In all texts (1) is the access that came first and (2) the one that conflicts with it. For a missing wait (1) is the operation in flight.
A situation of policy "isa" is one where shipped code and a strict reading of the ISA differ. Such findings exist only under
`--policy isa`, and say so. Asynchronous operations are in asynchronous.py.
"""

from __future__ import annotations

from typing import Final

from consan.reports.catalogue.asynchronous import IN_FLIGHT, OPERATION_WAITS, OPERATIONS_AT_EXIT
from consan.reports.catalogue.barrier_rows import BARRIER_MISUSE
from consan.reports.catalogue.global_races import GLOBAL_RACE, SCOPES
from consan.reports.catalogue.launch_rows import CLC_MISUSE, LAUNCH_AT_EXIT, LAUNCH_WAITS
from consan.reports.catalogue.mbarrier_rows import MBARRIER_DEADLOCKS, MBARRIER_MISUSE
from consan.reports.catalogue.order_rows import MISSING_ORDER
from consan.reports.catalogue.proxy_rows import PROXY_FENCES
from consan.reports.catalogue.races import DATA_RACE, NARROW_SCOPE
from consan.reports.catalogue.register_rows import REGISTER_HAZARD
from consan.reports.catalogue.situations import GENERAL, CatalogueEntry, Situation
from consan.reports.catalogue.tensor_rows import (
    TCGEN05_FENCE,
    TCGEN05_MISUSE,
    TENSOR_AT_EXIT,
    TENSOR_PROXY_FENCES,
    TENSOR_READS,
    TENSOR_WAITS,
)

_MISSING_WAIT = CatalogueEntry(
    "missing-wait",
    "missing wait",
    "error",
    IN_FLIGHT,
    {
        "not-waited/WAW": Situation(
            "a wait that covers {group} before this write: {wait_name}",
            "wait with {wait} ({wait_cpp}) in the issuing thread, then {cta_barrier}, before the bytes are used again at {second_at}",
            "the {operation} at {first_at} can still land on top of what the {second_role} at {second_at} stores",
        ),
        "not-waited": Situation(
            "a wait that covers {group} before this {second_role}: {wait_name}",
            "wait with {wait} ({wait_cpp}) in the issuing thread before {second_at}; other threads need {cta_barrier} after the wait",
        ),
        "not-committed": Situation(
            "{commit} between the copy and its wait: a wait covers committed groups only",
            "commit with {commit} after {first_at} and before the wait",
            IN_FLIGHT + ": it was not committed when (2) came",
        ),
        "waited-no-barrier": Situation(
            "a barrier after the wait: only the thread that issued the {operation} has waited for it",
            "put {cta_barrier} after the wait for {group} and before {second_at}",
            "the {operation} at {first_at} was waited for by its own thread only; the {second_role} at {second_at} is another thread's",
        ),
        "overlapping-copies": Situation(
            "a wait for {group} before the second copy into the same bytes",
            "give each copy bytes of its own, or wait with {wait} ({wait_cpp}) before {second_at}",
            "the copies at {first_at} and {second_at} are in flight together and write the same bytes, in either order",
        ),
        "source-overwritten": Situation(
            "a wait that covers {group} before the source is overwritten: {wait_name}",
            "wait with {wait} ({wait_cpp}) before {second_at}",
            "the {second_role} at {second_at} overwrites memory that the {operation} at {first_at} may still be reading",
        ),
        "own-warp-waited": Situation(
            "a barrier of the warpgroup after the waits: each warp has waited for itself",
            "put a named barrier of the warpgroup's 128 threads between the {wait_name} and {second_at}",
            "the {second_role} at {second_at} overwrites an operand of the wgmma at {first_at}: its own warp has waited, the other three"
            " warps of the warpgroup may still be multiplying",
            "warning",
        ),
        **OPERATION_WAITS,
        **TENSOR_WAITS,
        **LAUNCH_WAITS,
        GENERAL: Situation("a wait that covers the {operation} at (1) before (2)", "wait for its completion before {second_at}"),
    },
    caption="The operation of (1) can still be in flight when (2) touches its bytes.",
    by_compiler=True,
)

_UNINITIALIZED = CatalogueEntry(
    "uninitialized-read",
    "uninitialised read",
    "error",
    "the {first_role} at {first_at} loads {bytes} that nothing in this CTA has written",
    {
        "written-later": Situation(
            "a barrier between the write at (2) and the read at (1), with the write first",
            "put {cta_barrier} after the write at {second_at} and before the read at {first_at}",
            "the {first_role} at {first_at} loads bytes that the write at {second_at} stores only later",
        ),
        **TENSOR_READS,
        "operation:wgmma": Situation(
            "a write of these bytes before (1)",
            "fill the whole operand before {first_at}; check the address, strides and layout in its descriptor",
            "the {first_role} at {first_at} reads {bytes} that nothing in this CTA has written",
        ),
        "operation": Situation(
            "a write of these bytes before (1)",
            "fill the whole range before {first_at} (also the tail of a partial tile), or make the {operation} smaller; check its address",
            "the {first_role} at {first_at} reads {bytes} that nothing in this CTA has written",
        ),
        "unused": Situation(
            "nothing that changes the result",
            "nothing, if the value is meant to be unused; else initialise the bytes",
            "the {first_role} at {first_at} loads bytes that nothing has written; the loaded value is not used",
            "note",
        ),
        GENERAL: Situation(
            "a write of these bytes before the read",
            "write them first (also halo elements and the tail of a partial tile), or do not read them",
        ),
    },
    caption="Nothing has written the bytes that (1) loads.",
    shape="uninitialised",
    blame="does not write these bytes",
)

_OUT_OF_BOUNDS = CatalogueEntry(
    "out-of-bounds",
    "out of bounds",
    "error",
    "the {first_role} at {first_at} touches {bytes}, outside every known allocation{element}",
    {
        "shared": Situation(
            "",
            "check the index of the {first_role} at {first_at}{keep}{larger}{more_memory}",
            "the {first_role} at {first_at} touches {bytes}; {limit}{element}",
        ),
        "range": Situation(
            "",
            "check the address and the size of the copy (of a tensor map: its box){more_memory}",
            "the {first_role} at {first_at} touches {bytes}; {limit}",
        ),
        "misaligned": Situation(
            "",
            "correct the index or the stride of the {first_role} at {first_at}, or use accesses of a smaller width",
            "the {first_role} at {first_at} is misaligned: {alignment}",
        ),
        "freed": Situation(
            "",
            "free the memory only when the launch is over: move the free behind the launch in its stream, or behind a wait of the host for"
            " it; or give the launch memory that lives",
            "the {first_role} at {first_at} touches {bytes} in memory that was freed before",
        ),
        GENERAL: Situation("", "check the index of the {first_role} at {first_at}{keep}{larger}"),
    },
    caption="(1) touches bytes outside of the memory.",
    shape="outside",
)

_FAULT = CatalogueEntry(
    "fault",
    "fault",
    "error",
    "the launch ended with a fault",
    {
        "trap": Situation("", "see why the thread comes to the trap at {first_at}", "a thread executed the trap at {first_at}"),
        "assertion": Situation("", "see why the condition at {first_at} does not hold", "an assertion failed at {first_at}"),
        "illegal-access": Situation(
            "",
            "check the indices and the sizes of the buffers; --device cpu names the instruction and the thread",
            "the launch ended with a fault: a thread accessed memory that it must not",
        ),
        GENERAL: Situation("", "run it with --device cpu: that names the instruction, the thread and the condition"),
    },
    caption="(1) ends the launch.",
    shape="misuse",
    ends_launch=True,
)

_BARRIER_MISUSE = CatalogueEntry(
    "barrier-misuse",
    "barrier misuse",
    "error",
    "{barrier} is used against its protocol at {first_at}",
    {
        "result-ignored": Situation(
            "a test of the result: try_wait may return false at its time limit, and then the phase is not over",
            "repeat the try_wait at {first_at} until it returns true ({repeated})",
            "the result of the mbarrier.try_wait at {first_at} is ignored",
        ),
        **BARRIER_MISUSE,
        **MBARRIER_MISUSE,
        GENERAL: Situation("the protocol of the barrier", "see `consan explain barrier-misuse`"),
    },
    caption="The barrier is used against its protocol.",
    shape="misuse",
    blame="is to be repaired",
    by_compiler=True,
)

_DEADLOCK = CatalogueEntry(
    "deadlock",
    "deadlock",
    "error",
    "threads wait for {barrier}, and none that could still signal it can run",
    {
        **MBARRIER_DEADLOCKS,
        "no-object": Situation(
            "mbarrier.init before the wait: the mbarrier counts no arrivals, so nobody has initialised it, or each has dropped out",
            "initialise it in one thread ({init}), then {cta_barrier}, before the wait; check its address",
        ),
        "polled": Situation(
            "a store or an atomic that changes {barrier}: every thread that has not exited waits, or repeats a loop that writes nothing",
            "find the thread that should write it: it has exited, waits itself, or comes to the store only after the loop;"
            " let it write before that",
            "threads poll {barrier} in loops that never end: no thread that is left writes there",
        ),
        "grid": Situation(
            "an arrival of each CTA: some have exited, or wait for something else",
            "let every thread of every CTA reach grid.sync() as often as the others, also where it has nothing to do: no return and no"
            " branch before it",
            "threads wait at {barrier}, and not all CTAs come there",
        ),
        "lock": Situation(
            "a release of {barrier}: the thread that has it has exited, or waits for threads that try to take it",
            "release the lock on every path ({gpu_fence}, then an exchange that stores 0), before any exit and before any barrier that"
            " the others must reach; where lanes of one warp compete, let one of them take it for all",
            "threads try to take {barrier} in loops that never end: no remaining thread releases it",
        ),
        "loop": Situation(
            "a condition that ends the loop: it reads no memory that could change",
            "correct the condition of the loop; if the source polls a variable there, make it volatile or atomic, since the compiler has"
            " moved the load out of the loop",
            "threads repeat a loop that never ends",
        ),
        "columns": Situation(
            "{barrier} that tcgen05.alloc can take: there are 512, and others have too many of them",
            "free columns with tcgen05.dealloc before this allocation, or let all allocations of the CTA need no more than 512",
            "warps wait for {barrier} in tcgen05.alloc, and no thread that can still run frees them",
        ),
        "pair": Situation(
            "a tcgen05.alloc in {barrier}: with .cta_group::2 one warp of each CTA executes it",
            "let one warp of each CTA of the pair execute tcgen05.alloc.cta_group::2 with the same number of columns",
            "warps wait in tcgen05.alloc for {barrier}, which does not execute it",
        ),
        GENERAL: Situation("a signal that completes {barrier}", "make every thread that the barrier counts arrive at it"),
    },
    caption="Nobody who could complete the barrier can run: the threads wait for ever.",
    captions={
        "polled": "No thread is left that could write what the loop waits for: the threads poll for ever.",
        "grid": "Some CTA does not come to the barrier of the grid: the others wait for ever.",
        "lock": "Nobody who is left releases the lock: the threads try for ever.",
        "loop": "Nothing that is left can end the loop.",
        "timeout": "The launch did not end in time: this is where its threads stood.",
    },
    shape="waiting",
    ends_launch=True,
    blame="does not end the wait",
)

_LIFETIME = CatalogueEntry(
    "lifetime",
    "use outside a lifetime",
    "error",
    "the {first_role} at {first_at} touches shared memory of a CTA that has not started or has exited",
    {
        **OPERATIONS_AT_EXIT,
        **TENSOR_AT_EXIT,
        **LAUNCH_AT_EXIT,
        "exit": Situation(
            "a wait that covers {group} before the kernel returns: {wait_name}",
            "wait with cp.async.wait_all ({wait_all_cpp}) before the kernel returns",
            "the {operation} at {first_at} can still be writing shared memory when its CTA exits",
        ),
        "not-started": Situation(
            "a cluster barrier before the first access to another CTA's shared memory",
            "put {cluster_barrier_ptx} at the start of the kernel, before {first_at}",
            "the {first_role} at {first_at} touches shared memory of another CTA, which may not have started",
        ),
        "after-exit": Situation(
            "a cluster barrier between this {first_role} and the exit of the CTA that it reaches",
            "put {cluster_barrier_ptx} after {first_at}, before any CTA returns",
            "the {first_role} at {first_at} touches shared memory of another CTA, which may have exited",
        ),
        GENERAL: Situation(
            "a cluster barrier before the CTA exits", "put {cluster_barrier} before the first use and before the end of the kernel"
        ),
    },
    caption="Shared memory exists only while its CTA runs.",
    shape="lifetime",
    blame="does not wait for the operation",
    by_compiler=True,
)

_PROXY_FENCE = CatalogueEntry(
    "missing-proxy-fence",
    "missing proxy fence",
    "error",
    "the {first_role} at {first_at} and the {second_role} at {second_at} are ordered, but go through different proxies with no fence",
    {
        **PROXY_FENCES,
        **TENSOR_PROXY_FENCES,
        GENERAL: Situation(
            "fence.proxy.async between (1) and (2)",
            "execute fence.proxy.async in the writing thread, after {first_at} and before the barrier that orders (2)",
        ),
    },
    caption="(1) and (2) are ordered, but no proxy fence makes one proxy see what the other did.",
    shape="proxy",
    by_compiler=True,
)

_SCOPE = CatalogueEntry(
    "scope",
    "scope too narrow",
    "error",
    "the edge between {first_at} and {second_at} has a scope that does not include both threads",
    {
        "arrive-scope": Situation(
            "a release at .cluster scope between {first_at} and {second_at}: the present one has .cta scope",
            "write .cluster in place of .cta on what releases (an arrival: mbarrier.arrive.release.cluster.shared::cluster), and "
            ".acquire.cluster on what waits for it",
            "the {first_role} at {first_at} and the {second_role} at {second_at} are in different CTAs, but the signal between them is"
            " released only to threads of its own CTA",
        ),
        "wait-scope": Situation(
            "an acquire at .cluster scope between {first_at} and {second_at}: the present one has .cta scope",
            "write .acquire.cluster on the wait (mbarrier.try_wait.acquire.cluster)",
            "the {first_role} at {first_at} and the {second_role} at {second_at} are in different CTAs, but the signal between them is"
            " acquired only from threads of its own CTA",
            severity="warning",
        ),
        "completion-scope": Situation(
            "an acquire at .cluster scope of the phase of (1): complete_tx releases at .cluster scope, for an operation of another CTA"
            " (policy isa, D5: shipped libraries wait with .cta)",
            "write .acquire.cluster on the wait (mbarrier.try_wait.acquire.cluster)",
            "the {first_role} at {first_at} is issued by another CTA, and the waits for its completion before the {second_role} at"
            " {second_at} acquire only from threads of their own CTA",
            "warning",
            "isa",
        ),
        "store-scope": Situation(
            "a release at .cluster scope at {first_at}: the present one has .cta scope",
            "write .cluster in place of .cta at {first_at}",
            "the {first_role} at {first_at} and the {second_role} at {second_at} are in different CTAs, but the {first_role} releases only"
            " to threads of its own CTA",
        ),
        **SCOPES,
        "narrow-scope": NARROW_SCOPE,
        GENERAL: Situation("the same edge at a wider scope", "use .cluster (another CTA of the cluster) or .gpu on both sides of the edge"),
    },
    caption="An edge leads from (1) to (2), but its scope does not include both threads.",
    shape="scope",
    by_compiler=True,
)

KINDS: Final[dict[str, CatalogueEntry]] = {
    kind.id: kind
    for kind in (
        DATA_RACE,
        _MISSING_WAIT,
        _PROXY_FENCE,
        _UNINITIALIZED,
        _BARRIER_MISUSE,
        TCGEN05_MISUSE,
        TCGEN05_FENCE,
        CLC_MISUSE,
        _SCOPE,
        _DEADLOCK,
        _LIFETIME,
        REGISTER_HAZARD,
        _OUT_OF_BOUNDS,
        _FAULT,
        GLOBAL_RACE,
        MISSING_ORDER,
    )
}

_UNKNOWN: Final = CatalogueEntry("", "", "error", "", {}, caption="What is known of the finding, in order.")


def entry_of(kind: str) -> CatalogueEntry:
    """The row of a kind; of one that only a later version knows, in a stored report, one without words."""
    return KINDS.get(kind, _UNKNOWN)
