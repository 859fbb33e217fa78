"""Catalogue rows for asynchronous operations: bulk copies, matrix products. Those for mbarriers are in mbarrier_rows.py.

Names are those that `kinds.select` looks up: "situation", "situation/HAZARD", "situation:OPERATION", both. Placeholders are
filled in by `kinds.describe`. Fixes name the PTX first, then the spelling of the framework in use (frameworks.py).
"""

from __future__ import annotations

from typing import Final

from consan.reports.catalogue.situations import SIGNALLED_COPY, Situation

IN_FLIGHT: Final = "the {second_role} at {second_at} touches bytes that the {operation} at {first_at} may still be writing"

_FENCE_AND_BARRIER = (
    "execute fence.proxy.async.shared::cta in the threads of {first_at}, after it, then {cta_barrier} (or an mbarrier), before {second_at}"
)
_AWAITED_COPY = (
    "a wait for the cp.async by the thread that issues (1), and a barrier behind it, before (2)",
    "wait with {wait_name} ({wait_cpp}) in the thread that issues {first_at}, then put {cta_barrier}, before {second_at}",
)
OPERATION_RACES: Final = {
    "copy-not-awaited/WAR": Situation(
        *_AWAITED_COPY, "the {second_role} at {second_at} can overwrite the bytes before the cp.async at {first_at} has loaded them"
    ),
    "copy-not-awaited": Situation(
        *_AWAITED_COPY, "the cp.async at {first_at} and the {second_role} at {second_at} can land in either order"
    ),
    "refilled-too-early": Situation(
        'an edge from (1) to the thread that issues (2): the "empty" mbarrier of this stage, or a barrier',
        "let every consumer arrive on the stage's empty mbarrier ({arrive}) after {first_at}, and let"
        " the producer wait for that phase ({acquire}) before {second_at}{of_issuer}",
        "the {second_role} at {second_at} can refill the bytes while the {first_role} at {first_at} still uses them:"
        " nothing has shown its issuer that they are free",
    ),
    "loads-overlap": Situation(
        "a wait for the phase of (1), and the release of the bytes by their consumers, before (2)",
        "give each copy bytes of its own; or wait for the phase of {first_at}, and for the stage's empty mbarrier, before {second_at}",
        "the {first_role} at {first_at} and the {second_role} at {second_at} can be in flight together and write the same bytes, in either"
        " order",
    ),
    "operation-unordered/RAW": Situation(
        "a barrier between (1) and the thread that issues (2), and fence.proxy.async before that barrier",
        _FENCE_AND_BARRIER,
        "the {second_role} at {second_at} can come before the {first_role} at {first_at} has stored its value",
    ),
    "operation-unordered/WAR": Situation(
        "a barrier between the wait of the thread that issues (1) and the {second_role} (2)",
        "put {cta_barrier} after the wait for the {first_role} in the thread that issues {first_at}, and before {second_at} (in a loop: at"
        " the end of its body)",
        "the {second_role} at {second_at} can overwrite the bytes before the {first_role} at {first_at} has read them: nothing orders it"
        " behind the thread that issues (1)",
    ),
    "global-operation-unordered": Situation(
        "an order between (1) and the thread that issues (2), by a barrier, or a release after (1) and an acquire of it before (2)",
        "put {cta_barrier} (or an mbarrier whose arrival releases and whose wait acquires) after {first_at} and before {second_at}, and"
        " fence.proxy.async.global before it where there is none",
        "the {second_role} at {second_at} can come before the {first_role} at {first_at} has stored its value",
    ),
    "operation-unordered": Situation(
        "a barrier between (1) and the thread that issues (2), and fence.proxy.async before that barrier",
        _FENCE_AND_BARRIER,
        "the {first_role} at {first_at} and the {second_role} at {second_at} can land in either order: nothing orders (1) before the"
        " thread that issues (2)",
    ),
}

_STILL_READS = "the {second_role} at {second_at} can overwrite bytes that the {operation} at {first_at} still reads"
_PEER_WAITS = (
    "a wait for {group} in that CTA, and an edge from there to (2): {cluster_barrier_ptx}",
    "let a thread of that CTA wait for {group}, and put {cluster_barrier} after its wait and before {second_at}: a thread can wait at"
    " the mbarriers of its own CTA only",
)
_LOAD_WAITS = {
    "not-waited:bulk load/WAW": Situation(
        "a successful wait for {group} before this {second_role}",
        "wait with {wait} ({wait_cpp}) before the bytes are used again at {second_at}",
        "the {operation} at {first_at} can still land on top of what the {second_role} at {second_at} stores",
    ),
    "not-waited:bulk load": Situation(
        "a successful wait for {group} before this {second_role}",
        "wait with {wait} ({wait_cpp}) in every thread that uses the bytes, before {second_at}; or in one thread,"
        " with {cta_barrier} after it",
        IN_FLIGHT,
    ),
    "peer-not-waited": Situation(*_PEER_WAITS, IN_FLIGHT),
    "peer-not-waited/WAR": Situation(*_PEER_WAITS, _STILL_READS),
    "refilled": Situation(
        "a successful wait for the mbarrier of this copy before the {second_role}; or, if it uses bytes of an earlier copy, an arrival"
        " after it that lets this one overwrite them",
        "if {second_at} uses what this copy brings, wait for the phase of its mbarrier before {second_at}; if it uses bytes of an earlier"
        " copy, move the arrival that lets the copy at {first_at} overwrite them after {second_at}",
        IN_FLIGHT,
    ),
    "refilled:bulk load": Situation(
        "a successful wait for {group} before this {second_role}; or, if it uses bytes of an earlier phase, an arrival after it that"
        " lets the copy overwrite them",
        "if {second_at} uses what {group} brings, wait with {wait} ({wait_cpp}) before it; if it uses bytes of an earlier phase,"
        " move the arrival that lets the copy overwrite them after {second_at}",
        IN_FLIGHT,
    ),
    "waited-no-barrier:bulk load": Situation(
        "an edge from the wait for {group} to (2): only another thread has waited",
        "wait with {wait} ({wait_cpp}) in this thread too, or put {cta_barrier} between the other thread's wait and {second_at}",
        "the {operation} at {first_at} was waited for by another thread, and nothing orders that wait before the {second_role} at"
        " {second_at}",
    ),
}
_COPY_WAITS = {
    SIGNALLED_COPY: Situation(
        "a successful wait for phase {phase} of {barrier}, which signals the copy, before this {second_role}",
        "wait with {signalled_wait} in every thread that uses the bytes, before {second_at}; or in one thread, with {cta_barrier} after it",
        IN_FLIGHT,
    ),
}
_LOAD_WAITS |= {name.replace("bulk load", "st.async"): row for name, row in _LOAD_WAITS.items()}
_STORE_WAITS = {
    "not-waited:bulk store": Situation(
        "a wait that covers {group} before this {second_role}: {wait_name}",
        "wait with {wait} ({wait_cpp}) {by_issuer}, before {second_at}",
        _STILL_READS,
    ),
    "not-committed:bulk store": Situation(
        "{commit} between the copy and its wait: a wait covers committed groups only",
        "commit with {commit} ({commit_cpp}) after {first_at}, then wait with {wait} ({wait_cpp}) before {second_at}",
        _STILL_READS + ": it was not committed",
    ),
    "waited-no-barrier:bulk store": Situation(
        "a barrier after the wait: only the thread that issued the copy has waited for it",
        "put {cta_barrier} (or an mbarrier that the issuer arrives on) after {wait_name} and before {second_at}",
        _STILL_READS + ": its own thread has waited, and nothing orders that wait before (2)",
    ),
}
_NOT_THERE = "the {second_role} at {second_at} touches global memory that the {operation} at {first_at} may not have written yet"
_FULL_WAIT = "cp.async.bulk.wait_group {leave} (without .read{read_form})"
_RESULT_WAITS = {
    "global-read-wait-only:bulk store": Situation(
        "a cp.async.bulk.wait_group without .read that covers {group}: .read tells only that shared memory has been read",
        f"wait with {_FULL_WAIT} {{by_issuer}}, before {{second_at}}",
        _NOT_THERE + ": only its source has been waited for",
    ),
    "global-not-waited:bulk store": Situation(
        "a wait that covers {group} before this {second_role}: cp.async.bulk.wait_group without .read",
        f"wait with {_FULL_WAIT} {{by_issuer}}, before {{second_at}}",
        _NOT_THERE,
    ),
    "global-not-committed:bulk store": Situation(
        "{commit} between the copy and its wait: a wait covers committed groups only",
        f"commit with {{commit}} ({{commit_cpp}}) after {{first_at}}, then wait with {_FULL_WAIT} before {{second_at}}",
        _NOT_THERE + ": it was not committed",
    ),
    "global-waited-no-barrier:bulk store": Situation(
        "a barrier after the wait: only the thread that issued the copy has waited for it",
        "put {cta_barrier} (or an mbarrier that the issuer arrives on) after the wait for {group} and before {second_at}",
        _NOT_THERE + ": its own thread has waited, and nothing orders that wait before (2)",
    ),
    "global-other-lanes:bulk store": Situation(
        "{warp_barrier_ptx} after the wait: a wait serves the lanes that executed it",
        "put {warp_barrier} between the wait and {second_at}, or let all lanes wait",
        _NOT_THERE + ": another lane of the warp has waited for it",
    ),
    "global-other-issuer:bulk store": Situation(
        "a cp.async.bulk.wait_group by the thread that issued the {operation}: groups belong to the thread that commits them",
        f"wait with {_FULL_WAIT} in the thread that executed {{first_at}}, then {{cta_barrier}}, before {{second_at}}",
        _NOT_THERE + ": a wait by another thread does not cover it",
    ),
}
_IN_TIME = "in the thread that issued the copy, before anything tells the other CTA that the result is there"
_COPIED = "in the thread that issued the copy"
_RESULT_WAITS |= {
    "outer-read-wait-only:bulk store": Situation(
        "a cp.async.bulk.wait_group without .read that covers {group}: .read tells only that shared memory has been read",
        f"wait with {_FULL_WAIT} {_IN_TIME}",
        _NOT_THERE + ": only its source has been waited for",
    ),
    "outer-not-waited:bulk store": Situation(
        "a wait that covers {group} before the CTA of {second_at} learns of it: cp.async.bulk.wait_group without .read",
        f"wait with {_FULL_WAIT} {_IN_TIME}",
        _NOT_THERE,
    ),
    "outer-not-committed:bulk store": Situation(
        "{commit} between the copy and its wait: a wait covers committed groups only",
        f"commit with {{commit}} ({{commit_cpp}}) after {{first_at}}, then wait with {_FULL_WAIT} {_IN_TIME}",
        _NOT_THERE + ": it was not committed",
    ),
}
_SOURCE_READ = "the {second_role} at {second_at} overwrites global memory that the {operation} at {first_at} may still be reading"
_SOURCE_WAITS = {
    "global-source-overwritten:bulk load": Situation(
        "a successful wait for {group} before the source is overwritten",
        "wait with {wait} ({wait_cpp}) in this thread, or in another one with {cta_barrier} after it, before {second_at}",
        _SOURCE_READ,
    ),
    "global-source-overwritten:cp.async": Situation(
        "a wait that covers the {operation} at (1) before its source is overwritten: {wait_name}",
        "wait with {wait} ({wait_cpp}) in the thread that issued the copy, before {second_at}; other threads need {cta_barrier} after"
        " the wait",
        _SOURCE_READ,
    ),
}
_SOURCE_WAITS |= {
    f"outer-source-overwritten:{operation}": Situation(
        "a wait for the {operation} at {first_at} before the CTA of {second_at} learns that the source is free",
        f"wait with {{wait}} ({{wait_cpp}}) {_COPIED}, or in a thread of its CTA before a release that {{second_at}} comes behind",
        "the {second_role} at {second_at} of another CTA overwrites global memory that the {operation} at {first_at} may still be reading",
    )
    for operation in ("bulk load", "cp.async")
}
_MAP_CHANGED = "the {second_role} at {second_at} changes a tensor map that the {operation} at {first_at} may still be reading"
_MAP_WAITS = {
    "global-map-changed:bulk load": Situation(
        "a successful wait for {group} before the map is changed: a tensor copy reads its map until it is complete",
        "wait with {wait} ({wait_cpp}) in the thread that changes the map, or give each copy in flight a map of its own",
        _MAP_CHANGED,
    ),
    "global-map-changed:bulk store": Situation(
        "a {wait_name} that covers {group} before the map is changed: a tensor copy reads its map until then",
        "wait with {wait} ({wait_cpp}) in the thread that issued the copy, then {cta_barrier} (or {warp_barrier}), before {second_at}",
        _MAP_CHANGED,
    ),
}
_MAP_WAITS |= {name.replace("global", "outer"): row for name, row in _MAP_WAITS.items()}
_ALL_WARPS = (
    "let all four warps arrive after {wait} ({wait_cpp}), on the stage's empty mbarrier (its count includes them) or at a barrier"
    " of the warpgroup ({named_barrier}), before {second_at}"
)
_MATRIX_WAITS = {
    "not-waited:wgmma": Situation(
        "a wait that covers {group} before this {second_role}: {wait_name}",
        "wait with {wait} ({wait_cpp}) in all four warps, then {cta_barrier} (or mbarrier.arrive, where the writer waits),"
        " before {second_at}",
        "the {second_role} at {second_at} can overwrite an operand that the wgmma.mma_async at {first_at} still reads",
    ),
    "not-committed:wgmma": Situation(
        "{commit} between the wgmma.mma_async and its wait: a wait covers committed groups only",
        "commit with {commit} ({commit_cpp}) after {first_at}, then wait with {wait} ({wait_cpp}) before {second_at}",
        "the {second_role} at {second_at} can overwrite an operand of the wgmma.mma_async at {first_at}, which was not committed",
    ),
    "waited-no-barrier:wgmma": Situation(
        "an edge from the {wait_name} of the warpgroup to (2): a wait serves the warp that executes it",
        _ALL_WARPS + "; if they arrive before that wait already, let them wait with {wait_zero} before they do",
        "the {second_role} at {second_at} can overwrite an operand that the wgmma.mma_async at {first_at} still reads:"
        " nothing orders a wait for it before (2)",
    ),
    "own-warp-waited:wgmma": Situation(
        "a barrier of the warpgroup after {wait_name}: each of the four warps has waited for itself only",
        _ALL_WARPS,
        "the {second_role} at {second_at} overwrites an operand of the wgmma.mma_async at {first_at} after the wait of its own warp only:"
        " the other warps may be behind",
        "warning",
    ),
}
OPERATION_WAITS: Final = {
    **_COPY_WAITS,
    **_LOAD_WAITS,
    **_STORE_WAITS,
    **_RESULT_WAITS,
    **_SOURCE_WAITS,
    **_MAP_WAITS,
    **_MATRIX_WAITS,
    "other-lanes": Situation(
        "{warp_barrier_ptx} after the wait: a wait serves the lanes that executed it",
        "put {warp_barrier} between the wait and {second_at}, or let all lanes wait",
        "the {operation} at {first_at} was waited for by other lanes of the warp than the one of the {second_role} at {second_at}",
    ),
    "other-issuer": Situation(
        "a {wait_name} by the thread that issued the {operation}: groups belong to the thread that commits them",
        "wait with {wait} ({wait_cpp}) in the thread that executed {first_at}, then {cta_barrier}, before {second_at}",
        "the {second_role} at {second_at} relies on a wait by a thread that did not issue the {operation} at {first_at}:"
        " that wait does not cover it",
    ),
}

OPERATIONS_AT_EXIT: Final = {
    "exit:bulk load": Situation(
        "a wait for {group} by any thread of the CTA",
        "wait with {wait} ({wait_cpp}) after {first_at}, in a thread of the CTA that it writes to, before that thread returns; or do not"
        " issue the copy",
        "the {operation} at {first_at} can still be writing shared memory when its CTA exits: no wait for {group} has succeeded",
    ),
    "exit:bulk copy": Situation(
        "an edge from the CTA that has received the copy, and waited for it, to the exit of the CTA that sends it",
        "let the receiving CTA wait for the copy, and then let both pass {cluster_barrier} before the sender at {first_at} returns",
        "the {operation} at {first_at} can still be reading the shared memory of its CTA when that exits",
    ),
    "exit:bulk store": Situation(
        "a wait that covers {group} before the CTA exits: {wait_name}",
        "wait with {wait} ({wait_cpp}) after the {commit}, in the thread of {first_at}, before the kernel returns",
        "the {operation} at {first_at} can still be reading shared memory when its CTA exits",
    ),
    "exit:wgmma": Situation(
        "a wait that covers {group} before the CTA exits: {wait_name}",
        "wait with wgmma.wait_group.sync.aligned 0 ({wait_all_cpp}) after the {commit}, before the kernel returns",
        "the wgmma.mma_async at {first_at} can still be reading shared memory when its CTA exits",
    ),
}
OPERATIONS_AT_EXIT["exit:st.async"] = OPERATIONS_AT_EXIT["exit:bulk load"]
