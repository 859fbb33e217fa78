"""The catalogue's rows for races in global memory between CTAs, and for scopes that are too narrow there."""

from __future__ import annotations

from typing import Final

from consan.reports.catalogue.situations import CHECKED_FIRST, GENERAL, CatalogueEntry, Situation

_FLAG = "the flag {flag_at} comes between the {first_role} at {first_at} and the {second_role} at {second_at}"
_NOT_PUBLISHED = _FLAG + ", but no fence or release publishes the {first_role} before the flag is written"
_NOT_ACQUIRED = _FLAG + ", but no fence or acquire follows the read of the flag: the {second_role} may be performed before it"
_RELEASE = (
    " after {first_at} and before the flag is written at {flag_write_at}; or make that write a release ({flag_release}){other_writers}"
)
_NO_SIDE = _FLAG + ", but nothing publishes the {first_role} before the flag is written, and nothing acquires it after the flag is read"
_ACQUIRE = " after the flag is read at {flag_read_at} and before {second_at}; or make that read an acquire ({flag_acquire})"

_BETWEEN_CTAS = "a synchronisation between the CTAs: a barrier of a CTA orders its own threads only"

_AFTER_RELEASE = "a release after the {first_role} at {first_at}, which the other CTA acquires before the {second_role} at {second_at}"
_RELEASED_BEFORE = (
    "the CTA of the {first_role} at {first_at} releases at {fence_at} before that {first_role}; the {second_role} at {second_at} has"
    " acquired this release and no later one"
)
_OF_CHECKS: Final = ("no-synchronisation", "no-cluster-barrier", "released-before", "weak-access")
_LOST_UPDATES: Final = Situation(
    "{an_update}: load, change and store are separate steps, and threads of other CTAs do the same",
    "{one_update}",
    "threads of several CTAs update the same bytes at {second_at} in separate steps: all but one of the updates can be lost",
)

READ_ONLY: Final = {
    "not-coherent": Situation(
        "memory that nothing writes during the launch: only that may be read with .nc, or by a texture",
        "{plain_load}, or write in another launch",
        "one launch writes bytes and reads them by a path that is not coherent (.nc, a texture), at {first_at} and {second_at}",
    ),
    "written-later": Situation(
        "memory that nothing writes during the launch: only that may be read with .nc, or by a texture",
        "{plain_load}, or write in another launch",
        "the {second_role} at {second_at} changes, in the same launch, what the {first_role} at {first_at} has read by a path that is not"
        " coherent",
        "warning",
    ),
}

# The sides of a flag through which threads hand over: (1) is released, (2) acquired.
NO_SIDE: Final = "no-release-no-acquire"
FLAG_SIDES: Final = ("no-release", "no-acquire", NO_SIDE)
OF_A_GRID: Final = "grid"  # before the name of a scope's situation: the CTAs are of no cluster


def _both(fence: str, scope: str) -> Situation:
    """Both sides of a flag: one without the other orders nothing."""
    return Situation(
        f"both sides: a fence or a release{scope} between {{first_at}} and the write of the flag at {{flag_write_at}}, and a fence or an"
        f" acquire{scope} between the read of the flag at {{flag_read_at}} and {{second_at}}",
        f"put {fence} after {{first_at}} and before the flag is written at {{flag_write_at}}, and {fence} after the flag is read at"
        " {flag_read_at} and before {second_at}; or make that write a release ({flag_release}) and that read an acquire ({flag_acquire})"
        "{other_writers}",
        _NO_SIDE,
    )


_OVERTAKEN: Final = Situation(
    "a release behind the {first_role} at {first_at}, which is acquired before the {second_role} at {second_at} of a later round",
    "release a flag behind {first_at}, and acquire it before {second_at} of a later round, or put a barrier between the two; if there is"
    " such a flag, it lets {second_at} go on a round too early",
    "the {second_role} at {second_at} of a later round can overwrite the bytes before the {first_role} at {first_at} has loaded them: of"
    " the release at {fence_at}, only an earlier round is acquired in between",
)

_USED_AGAIN: Final = Situation(
    "a release behind the {first_role} at {first_at}, which is acquired before the {second_role} at {second_at}",
    "release a flag behind {first_at}, and acquire it before {second_at}, or put a barrier between the two; or let the"
    " {second_role} be of another buffer",
    "the {second_role} at {second_at} can overwrite the bytes before the {first_role} at {first_at} has loaded them: the release at"
    " {fence_at} comes before the {first_role}, and no later one is acquired before the {second_role}",
)


def _flag_before(fence: str) -> Situation:
    """A flag that is written too early, by a write that need not release."""
    return Situation(
        "a write of the flag behind the {first_role} at {first_at}, with a release between the two",
        "let the {first_role} at {first_at} come before the flag is written at {flag_write_at}, and put "
        + fence
        + " between the two; or let the threads synchronise once more between {first_at} and {second_at}",
        "the flag is written at {flag_write_at}, before the {first_role} at {first_at}; the thread of the {second_role} at {second_at} has"
        " waited for it at {flag_read_at}, and for no later flag",
    )


WITHIN_A_CTA: Final = {
    "released-round-before": _OVERTAKEN,
    "released-reads-before": _USED_AGAIN,
    "flag-before": _flag_before("{cta_fence}"),
    NO_SIDE: _both("{cta_fence}", ""),
    "no-release": Situation(
        "the release side: a fence or a release between {first_at} and the write of the flag at {flag_write_at}",
        "put {cta_fence}" + _RELEASE,
        _NOT_PUBLISHED,
    ),
    "no-acquire": Situation(
        "the acquire side: a fence or an acquire between the read of the flag at {flag_read_at} and {second_at}",
        "put {cta_fence}" + _ACQUIRE,
        _NOT_ACQUIRED,
    ),
    "released-before": Situation(
        "a release behind the {first_role} at {first_at}, which is acquired before the {second_role} at {second_at}",
        "let the {first_role} at {first_at} come before the release at {fence_at}",
        "the release at {fence_at} comes before the {first_role} at {first_at} of its warp; the {second_role} at {second_at} has acquired"
        " this release and no later one",
    ),
}

BETWEEN_LAUNCHES: Final = {
    "no-grid-wait": Situation(
        "griddepcontrol.wait between the start of {second_kernel} and {second_at}: a programmatic dependent may start while {first_kernel}"
        " runs, and launch_dependents publishes nothing",
        "put {grid_wait} before {second_at}, in each thread or in one thread before a barrier; or launch {second_kernel} without the"
        " attribute of programmatic stream serialisation",
        "the {second_role} at {second_at} in {second_kernel} does not wait for the end of {first_kernel}, whose {first_role} at {first_at}"
        " touches the same bytes",
    ),
    "no-chained-wait": Situation(
        "griddepcontrol.wait in each kernel between {first_kernel} and {second_kernel}: a wait is for the launch before it, and for what"
        " that one has waited for",
        "put {grid_wait} into the kernels that are launched between the two, and before {second_at}; or launch one of them without the"
        " attribute of programmatic stream serialisation",
        "{first_kernel} may still run at the {second_role} at {second_at} in {second_kernel}: a launch between the two has not waited for"
        " it, and its {first_role} at {first_at} touches the same bytes",
    ),
    "no-stream-edge": Situation(
        "an edge between the streams: nothing lets {second_kernel} in {second_stream} come after {first_kernel} in {first_stream}",
        "record an event in {first_stream} behind {first_kernel}, and let {second_stream} wait for it before {second_kernel}{stream_edge};"
        " or make both in one stream",
        "{second_stream} does not wait for {first_stream}: {first_kernel} and {second_kernel} touch the same bytes, at {both_at}, and"
        " may run at the same time",
    ),
    "no-graph-edge": Situation(
        "an edge of the graph: nothing lets the node of {second_kernel} come after that of {first_kernel}",
        "name the node of {first_kernel} among the dependencies of the node of {second_kernel}, where that is added, or behind it"
        " (cudaGraphAddDependencies, cuGraphAddDependencies)",
        "the node of {second_kernel} does not depend on that of {first_kernel}: they touch the same bytes, at {both_at}, and may run at"
        " the same time",
    ),
    "no-device-edge": Situation(
        "an edge between the GPUs: nothing lets {second_kernel} in {second_stream} come after {first_kernel} in {first_stream}",
        "record an event in {first_stream} behind {first_kernel}, and let {second_stream} wait for it before {second_kernel}{stream_edge};"
        " or let the host wait for {first_stream} between the two (cudaStreamSynchronize)",
        "{second_stream} does not wait for {first_stream}: {first_kernel} and {second_kernel} touch the same bytes, at {both_at}, and"
        " may run at the same time",
    ),
    "no-rank-edge": Situation(
        "an order between the ranks: nothing lets {second_kernel} of {second_stream} come after {first_kernel} of {first_stream}",
        "put a barrier of all ranks between the two launches (handle.barrier() of symmetric memory, torch.distributed.barrier()), or let"
        " {first_kernel} end with a signal of .sys scope to {second_stream} that a kernel there waits for before {second_kernel} begins",
        "{second_stream} does not wait for {first_stream}: {first_kernel} and {second_kernel} touch the same bytes, at {both_at}, and"
        " may run at the same time",
    ),
    "rank-ended": Situation(
        "an order between the ranks: nothing lets {first_stream} end after {second_kernel} of {second_stream}",
        "put a barrier of all ranks behind {second_kernel}, before a rank ends",
        "{first_stream} may have ended, and its memory with it, when {second_kernel} of {second_stream} touches it at {second_at}",
        "warning",
    ),
    "no-host-wait": Situation(
        "a wait of the host for {first_kernel} in {first_stream}: a launch and an asynchronous copy return before their work is done",
        "let the host wait for {first_stream} behind {first_kernel} before it touches the memory: cudaStreamSynchronize,"
        " cudaDeviceSynchronize, or cudaEventSynchronize with an event behind {first_kernel}",
        "the host has not waited for {first_stream}: its code touches bytes that {first_kernel} may still use",
    ),
    "no-host-release": Situation(
        "a release of .sys scope in {first_kernel} between {first_at} and the write of the flag at which the host looks: a narrower one"
        " publishes nothing for the host",
        "put {sys_fence} after {first_at} and before the flag is written, or make that write a release of .sys scope",
        "the host has looked at a flag of {first_kernel}, but no release of .sys scope publishes the {first_role} at {first_at} before the"
        " flag is written: its code touches bytes that {first_kernel} may still use",
    ),
    "memory-given-again": Situation(
        "an edge between the streams: nothing lets {second_kernel} in {second_stream} come after {first_kernel} in {first_stream}",
        "keep the array until {first_stream} is done with it: before it is freed, let {second_stream}, to which the pool gives its memory"
        " again, wait for an event in {first_stream} behind {first_kernel}{stream_edge}",
        "{second_stream} does not wait for {first_stream}: {first_kernel} may still use an array at {first_at} that was freed, when"
        " {second_kernel} at {second_at} uses its memory, which the pool has given to another array",
    ),
}

# A race of D17, in one CTA or between two.
WEAKER_FENCES: Final = {
    "weaker-fences": Situation(
        "fence.sc on both sides: each thread has a fence, another thread sets or reads the flag, and only fence.sc orders that (ISA 8.9.4;"
        " policy isa, D17: shipped code uses weaker fences)",
        "make the fences between {first_at} and {second_at} fence.sc ({gpu_fence}), or put the release into the thread that sets the flag,"
        " behind the barrier, and the acquire into the one that reads it",
        "the {first_role} at {first_at} and the {second_role} at {second_at} are ordered by weaker fences than the ISA asks for",
        "warning",
        "isa",
    ),
}

# Two read-modify-writes of different sizes, in any memory.
MIXED_ATOMICS: Final = {
    "mixed-atomics": Situation(
        "atomics of the same bytes: each of the two is performed as a whole (ISA 8.7.2), but no axiom says what a program with such a pair"
        " may read",
        "use one size at {first_at} and {second_at}, or give them different bytes",
        "the atomics at {first_at} and {second_at} overlap, but their sizes differ, and nothing orders them",
        "warning",
    ),
}

GLOBAL_RACE: Final = CatalogueEntry(
    "global-race",
    "race on global memory",
    "error",
    "several CTAs touch the same bytes at {both_at}, and nothing orders them",
    {
        "no-synchronisation": Situation(
            _BETWEEN_CTAS,
            "if the read wants the old value, write to another buffer ({by_an_atomic}); if it wants what the other CTA writes, read it in a"
            " second kernel, or put {grid_barrier}, or release and acquire a flag at .gpu scope",
        ),
        "no-synchronisation/WAW": Situation(
            _BETWEEN_CTAS,
            "give each CTA bytes of its own, or let one CTA write them ({by_an_atomic})",
        ),
        **{f"{name}@checked{hazard}": row for name in _OF_CHECKS for hazard, row in CHECKED_FIRST.items()},
        "no-synchronisation@update": _LOST_UPDATES,
        "no-cluster-barrier": Situation(
            "a barrier of the cluster that releases and acquires: a barrier of a CTA orders its own threads only",
            "put {cluster_barrier} between {first_at} and {second_at}, without .relaxed; or give each CTA bytes of its own",
            "CTAs of one cluster touch the same bytes at {both_at}, and nothing orders them",
        ),
        "no-cluster-barrier@update": _LOST_UPDATES,
        "weak-access": Situation(
            "a strong access at {weak_at}: only strong accesses of both threads make a flag, a counter or a lock",
            "if the bytes are a flag or a lock, access them at {weak_at} too with {strong_access}, and put {gpu_fence} between that and the"
            " data; if the {weak_role} only sets the first value or fetches the last one, do that in a launch of its own",
            "the {strong_role} at {strong_at} is a strong operation, the {weak_role} of the same bytes at {weak_at} is a plain one, and"
            " nothing orders them",
        ),
        "mixed-sizes": Situation(
            "accesses of the same bytes: strong accesses synchronise only if their addresses and sizes are equal",
            "access the flag at {first_at} and {second_at} with one size, as one word",
            "the strong accesses at {first_at} and {second_at} overlap, but their bytes are not the same, and nothing orders them",
        ),
        "released-before": Situation(
            _AFTER_RELEASE,
            "let the {first_role} at {first_at} come before the release at {fence_at}, or synchronise the CTAs once more between {first_at}"
            " and {second_at}",
            _RELEASED_BEFORE,
        ),
        "released-round-before": _OVERTAKEN,
        "released-reads-before": _USED_AGAIN,
        "flag-before": _flag_before("{gpu_fence}"),
        "flag-passed": Situation(
            "a wait for the write of the flag at {flag_write_at} behind the {first_role} at {first_at}: the read at {flag_read_at} lets"
            " its thread go on before that",
            "let the thread that reads the flag at {flag_read_at} go on only when it has read what the write at {flag_write_at} leaves"
            " behind the {first_role} at {first_at}: the number that it waits for is too low, or it does not wait",
            "the flag is written at {flag_write_at} behind the {first_role} at {first_at}, and read at {flag_read_at} before that: nothing"
            " lets the {second_role} at {second_at} wait for it",
        ),
        "released-before/WAW": Situation(
            _AFTER_RELEASE,
            "give each CTA bytes of its own; or, if both are to write them, let the {first_role} at {first_at} come before the release at"
            " {fence_at}, or synchronise the CTAs once more",
            _RELEASED_BEFORE,
        ),
        "released-before@update": _LOST_UPDATES,
        "released-by-other": Situation(
            "a barrier of the CTA between the {first_role} at {first_at} and the release at {fence_at}, which another thread executes",
            "put {cta_barrier} after {first_at} and before the release at {fence_at}",
            "one thread of a CTA releases at {fence_at}, another does the {first_role} at {first_at}, and nothing orders the two; the"
            " {second_role} at {second_at} in another CTA has acquired that release only",
        ),
        "released-by-other:bulk store": Situation(
            "a barrier of the CTA between the wait for the {first_role} at {first_at} and the release at {fence_at}, which another thread"
            " executes",
            "put {cta_barrier} after the wait of the thread of {first_at} (cp.async.bulk.wait_group without .read) and before the release"
            " at {fence_at}; or let that thread release",
            "one thread of a CTA releases at {fence_at}, another does the {first_role} at {first_at} and waits for it, and nothing orders"
            " the two; the {second_role} at {second_at} in another CTA has acquired that release only",
        ),
        NO_SIDE: _both("{gpu_fence}", " at .gpu scope"),
        "no-release": Situation(
            "the release side: a fence or a release at .gpu scope between {first_at} and the write of the flag at {flag_write_at}",
            "put {gpu_fence}" + _RELEASE,
            _NOT_PUBLISHED,
        ),
        "no-acquire": Situation(
            "the acquire side: a fence or an acquire at .gpu scope between the read of the flag at {flag_read_at} and {second_at}",
            "put {gpu_fence}" + _ACQUIRE,
            _NOT_ACQUIRED,
        ),
        "other-threads": Situation(
            "a barrier of the CTA between the thread that has acquired the flag and the {second_role} at {second_at}",
            "put {cta_barrier} after the flag has been read, before {second_at}",
            "one thread of a CTA has acquired what the other CTA has written at {first_at}, another thread does the {second_role} at"
            " {second_at}, and nothing orders the two",
        ),
        "other-lanes": Situation(
            "{warp_barrier} after the acquire by another lane of the warp: it serves its own lane",
            "put {warp_barrier} after the acquire and before {second_at}, or let all lanes of the warp acquire the flag",
            "a flag comes between {first_at} and {second_at}, but another lane of the warp than that of the {second_role} at {second_at}"
            " acquires it, and nothing orders the two lanes",
        ),
        "other-lane-released": Situation(
            "{warp_barrier} before the release by another lane of the warp: it publishes what its own lane did",
            "put {warp_barrier} after {first_at} and before the release, or let all lanes of the warp release",
            "a flag comes between {first_at} and {second_at}, but another lane of the warp than that of the {first_role} at {first_at}"
            " releases it, and nothing orders the two lanes",
        ),
        "surface-of-ctas": Situation(
            "another launch: within one, no synchronisation orders the accesses of two CTAs to a surface (ISA 8.9.5: order through its"
            " proxy holds within a CTA)",
            "give each CTA bytes of its own, access them in another launch at {second_at}, or hand data over in ordinary memory",
            "several CTAs access the same bytes of a surface, at {first_at} and {second_at}, in one launch",
        ),
        **READ_ONLY,
        **BETWEEN_LAUNCHES,
        **WEAKER_FENCES,
        **MIXED_ATOMICS,
        "same-value": Situation(
            "a synchronisation between the CTAs",
            "let one CTA store it, or make the stores atomic",
            "several CTAs store the same value into the same bytes, at {first_at} and {second_at}, in no order",
            "warning",
        ),
        "replicated": Situation(
            "nothing that changes the result: one instruction of several threads stores one value",
            "nothing, if the threads hold the same value on purpose; else let one thread store it",
            "several CTAs store the same value into the same bytes at {second_at}, in no order",
            "warning",
        ),
        GENERAL: Situation(
            "an edge that orders (1) before (2)", "release and acquire a flag at .gpu scope between {first_at} and {second_at}"
        ),
    },
    caption="Nothing orders (1) before (2): they can take effect in either order.",
)

_WIDEN: Final = "widen the scope of what releases between {first_at} and {second_at}, and of what acquires it, to {gpu_scope}"
_DIFFERENT_CTAS: Final = (
    "the {first_role} at {first_at} and the {second_role} at {second_at} are in different CTAs, but the signal between them is"
)
SCOPES: Final = {
    f"{OF_A_GRID}-arrive-scope": Situation(
        "a release at .gpu scope between {first_at} and {second_at}: the present one excludes the other CTA",
        _WIDEN,
        _DIFFERENT_CTAS + " released only to threads of its own CTA or cluster",
    ),
    f"{OF_A_GRID}-wait-scope": Situation(
        "an acquire at .gpu scope between {first_at} and {second_at}: the present one excludes the other CTA",
        _WIDEN,
        _DIFFERENT_CTAS + " acquired only from threads of its own CTA or cluster",
    ),
    "access-scope": Situation(
        ".gpu scope on both accesses: the scope at {narrow_at} excludes the other CTA",
        "widen the scope at {narrow_at} to {gpu_scope}",
        "CTAs access the same bytes at {both_at}, and the scope of the access at {narrow_at} does not include the other CTA",
    ),
    "fence-scope": Situation(
        "a fence at .gpu scope between {first_at} and {second_at}: the scope of the fence at {fence_at} excludes the other CTA",
        "write {gpu_fence} in place of the fence at {fence_at}",
        "the fence at {fence_at} orders the {first_role} at {first_at} only for threads of its own CTA or cluster, and the {second_role} at"
        " {second_at} is outside of it",
    ),
    "host-scope": Situation(
        "a release of .sys scope in {first_kernel} between {first_at} and the write of the flag at which the host looks: the scope of the"
        " present fence excludes the host",
        "put {sys_fence} in place of the fence between {first_at} and the write of the flag",
        "the host has looked at a flag of {first_kernel}, but the fence between the {first_role} at {first_at} and the flag orders the two"
        " only for threads of the device",
    ),
    "release-scope": Situation(
        "a release at .gpu scope before the flag is written at {flag_write_at}: the scope at {fence_at} excludes the other CTA",
        "widen the scope at {fence_at} to {gpu_scope}, or put {gpu_fence} there",
        "the release at {fence_at} publishes the {first_role} at {first_at} only to threads of its own CTA, and the {second_role} at"
        " {second_at} is in another CTA",
    ),
    "acquire-scope": Situation(
        "an acquire at .gpu scope after the flag is read at {flag_read_at}: the scope of the present one excludes the other CTA",
        "widen the scope of what acquires after {flag_read_at} to {gpu_scope}, or put {gpu_fence} there",
        "the acquire before the {second_role} at {second_at} covers only what its own CTA has published, and the {first_role} at {first_at}"
        " is in another CTA",
    ),
    "flag-scope": Situation(
        "a flag at .gpu scope: its scope at {flag_places} must include the other CTA",
        "widen the scope at {flag_places} to {gpu_scope}",
        "the {first_role} at {first_at} and the {second_role} at {second_at} are in different CTAs, but the scope of the flag {flag_at}"
        " between them does not include both",
    ),
}
