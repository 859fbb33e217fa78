"""The catalogue's rows for races in global memory between CTAs, and for scopes that are too narrow there."""

from __future__ import annotations

from typing import Final

from consan.reports.situations import GENERAL, CatalogueEntry, Situation

_FLAG = "the flag that is written at {flag_write_at} and read at {flag_read_at}"
_RELEASE = "{gpu_fence} after {first_at} and before the flag is written at {flag_write_at} (or a release there)"
_ACQUIRE = "{gpu_fence} after the flag is read at {flag_read_at} and before {second_at} (or an acquire there)"

_BETWEEN_CTAS = "a synchronisation between the CTAs: a barrier of a CTA orders its own threads only"

_AFTER_RELEASE = (
    "an order between {first_at} and {second_at}: the last release that the {second_role} is behind, at {fence_at}, came before the"
    " {first_role}"
)
_RELEASED_BEFORE = (
    "the {first_role} at {first_at} comes after its CTA's release at {fence_at}, and the {second_role} at {second_at} is behind that"
    " release only"
)
_LOST_UPDATES: Final = Situation(
    "an atomic update: load, change and store are separate steps, and threads of other CTAs do the same",
    "make the update one atomic operation ({atomic_add} for a sum)",
    "threads of several CTAs update the same bytes at {second_at} in separate steps: all but one of the updates can be lost",
)

READ_ONLY: Final = {
    "not-coherent": Situation(
        "memory that the launch does not write: a load with .nc needs that",
        "load with a plain load, or write in another launch",
        "one of {first_at} and {second_at} loads with .nc bytes that the other writes in the same launch",
    ),
    "written-later": Situation(
        "memory that the launch does not write: a load with .nc needs that",
        "load with a plain load, or write in another launch",
        "the {second_role} at {second_at} comes after the load with .nc at {first_at}, but in the same launch",
        "warning",
    ),
}

# The sides of a flag through which threads hand over: (1) is released, (2) acquired.
FLAG_SIDES: Final = ("no-release", "no-acquire")
WITHIN_A_CTA: Final = {
    "no-release": Situation(
        "the release side: a fence or a release between {first_at} and the write of the flag at {flag_write_at}",
        "put " + _RELEASE,
        "the {second_role} at {second_at} comes after " + _FLAG + ", but nothing publishes the {first_role} at {first_at} before the flag"
        " is written",
    ),
    "no-acquire": Situation(
        "the acquire side: a fence or an acquire between the read of the flag at {flag_read_at} and {second_at}",
        "put " + _ACQUIRE,
        "the {second_role} at {second_at} comes after " + _FLAG + ", but nothing keeps it from using older data than the flag",
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
        "{second_stream} does not wait for {first_stream}: {first_kernel} and {second_kernel} touch the same bytes, at {first_at} and"
        " {second_at}, and may run at the same time",
    ),
    "memory-given-again": Situation(
        "an edge between the streams: nothing lets {second_kernel} in {second_stream} come after {first_kernel} in {first_stream}",
        "keep the array until {first_stream} is done with it: before it is freed, let {second_stream}, to which the pool gives its memory"
        " again, wait for an event in {first_stream} behind {first_kernel}{stream_edge}",
        "{second_stream} does not wait for {first_stream}: {first_kernel} may still use an array at {first_at} that was freed, when"
        " {second_kernel} at {second_at} uses its memory, which the pool has given to another array",
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
            "if the read is to see the value from before, write to another buffer than is read; if it is to see what the other CTA has"
            " written, split the kernel in two, with the write in the first and the read in the second, or launch it cooperatively and"
            " put a barrier of the grid between them, or release and acquire a flag at .gpu scope",
        ),
        "no-synchronisation/WAW": Situation(
            _BETWEEN_CTAS,
            "give each CTA bytes of its own; or, if the values of both are wanted, combine them with one atomic operation ({atomic_add} for"
            " a sum)",
        ),
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
            " data; if the {weak_role} sets a first value, or takes the last one, do that in a launch of its own",
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
            "the {second_role} at {second_at} is behind the release at {fence_at} by one thread of the other CTA, and nothing orders the"
            " {first_role} at {first_at} by another of its threads before that release",
        ),
        "no-release": Situation(
            "the release side: a fence or a release at .gpu scope between {first_at} and the write of the flag at {flag_write_at}",
            "put " + _RELEASE,
            "the {second_role} at {second_at} comes after its CTA has read " + _FLAG + ", but nothing publishes the {first_role} at"
            " {first_at} before the flag is written",
        ),
        "no-acquire": Situation(
            "the acquire side: a fence or an acquire at .gpu scope between the read of the flag at {flag_read_at} and {second_at}",
            "put " + _ACQUIRE,
            "the {second_role} at {second_at} comes after its CTA has read " + _FLAG + ", but nothing keeps it from using older data than"
            " the flag",
        ),
        "other-threads": Situation(
            "a barrier of the CTA between the thread that has acquired the flag and the {second_role} at {second_at}",
            "put {cta_barrier} after the flag has been read, before {second_at}",
            "the {first_role} at {first_at} is ordered before another thread of the CTA than the one of the {second_role} at {second_at}",
        ),
        "no-warp-sync": Situation(
            "{warp_barrier} between the lane that releases or acquires the flag and the others of its warp",
            "put {warp_barrier} between the access and the flag: after {first_at}, or before {second_at}",
            "another lane of a warp has released or acquired the flag between {first_at} and {second_at}",
            "warning",
        ),
        **READ_ONLY,
        **BETWEEN_LAUNCHES,
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
            "note",
        ),
        GENERAL: Situation(
            "an edge that orders (1) before (2)", "release and acquire a flag at .gpu scope between {first_at} and {second_at}"
        ),
    },
)

SCOPES: Final = {
    "access-scope": Situation(
        ".gpu scope on both accesses: the scope at {narrow_at} excludes the other CTA",
        "widen the scope at {narrow_at} to {gpu_scope}",
        "CTAs access the same bytes at {first_at} and {second_at}, and the scope of the access at {narrow_at} does not include the other",
    ),
    "fence-scope": Situation(
        "a fence at .gpu scope between {first_at} and {second_at}: that at {fence_at} has a scope that excludes the other CTA",
        "write {gpu_fence} in place of the fence at {fence_at}",
        "the fence at {fence_at} orders the {first_role} at {first_at} for threads of its own CTA or cluster only; the {second_role} at"
        " {second_at} is in another one",
    ),
    "release-scope": Situation(
        "a release at .gpu scope before the flag is written at {flag_write_at}: the scope of that at {fence_at} excludes the other CTA",
        "widen the scope at {fence_at} to {gpu_scope}, or put {gpu_fence} there",
        "the {first_role} at {first_at} is published at {fence_at} only to threads of its own CTA; the {second_role} at {second_at} is in"
        " another one",
    ),
    "acquire-scope": Situation(
        "an acquire at .gpu scope after the flag is read at {flag_read_at}: the scope of the present one excludes the other CTA",
        "widen the scope of what acquires after {flag_read_at} to {gpu_scope}, or put {gpu_fence} there",
        "the {second_role} at {second_at} acquires what its own CTA has published; the {first_role} at {first_at} is in another one",
    ),
    "flag-scope": Situation(
        "a flag at .gpu scope: the accesses at {flag_write_at} and {flag_read_at} must both include the other CTA",
        "widen the scope of both to {gpu_scope}",
        "the {first_role} at {first_at} and the {second_role} at {second_at} are in different CTAs, but the scope of the flag between them"
        " does not include both",
    ),
}
