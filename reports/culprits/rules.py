"""The rules about culprits: for which situation, which finder, and the words. The first rule that finds an instruction speaks."""

from __future__ import annotations

from typing import Final

from consan.reports.catalogue.situations import SIGNALLED_COPY
from consan.reports.culprits.cases import CulpritRule, is_arrival, is_phase_wait
from consan.reports.culprits.finders import (
    arrives_only,
    barrier_before_wait,
    barrier_without_wait,
    commit_after_wait,
    committed_only,
    fence_after_barrier,
    fence_before,
    fence_before_wait,
    fence_of_some,
    foreign_wait,
    in_branch,
    late_cluster_wait,
    late_wait,
    leaves,
    leaves_last,
    never_committed,
    not_by_issuer,
    of_other_space,
    orders_nothing,
    other_arrival,
    passed_by,
    relaxed,
    source_only,
    thread_fence,
    too_few,
    two_barriers,
    unfenced,
    wait_of_another,
    waits_for_own,
    warp_barrier,
)
from consan.reports.culprits.hand_overs import (
    EARLY_RELEASE,
    LONE_RELEASE,
    announced_alone,
    ends_early,
    heard_by_nobody,
    not_waited_for,
    published_early,
)
from consan.reports.culprits.phases import (
    OTHER_WAITS,
    OVERTAKEN_WAITS,
    REFILLS,
    constant_parity,
    constant_parity_of_first,
    freeing,
    late_hand_over,
    late_phase_wait,
    phase_in_loop,
)
from consan.reports.culprits.scopes import narrow_fence, of_cta_scope, released_at_cta

_CTA: Final = ("no-barrier", "atomic", "same-value")
_ENGINES: Final = ("operation-unordered", "global-operation-unordered")
_SHARED_GROUPS: Final = ("not-waited", "source-overwritten", "global-source-overwritten")
_GROUPS: Final = (*_SHARED_GROUPS, "overlapping-copies", "global-not-waited", "global-map-changed")

_EARLY: Final = (
    "the {culprit} at {culprit_at} comes before the {first_role} at {first_at}, and {publishes}",
    "move the {culprit} at {culprit_at} after the {first_role} at {first_at}{and_fence}",
)
_LATE: Final = (
    "the {culprit} at {culprit_at} comes only after the {second_role}",
    "move the {culprit} at {culprit_at} before the {second_role} at {second_at}",
)
_UNHEARD: Final = (
    "no instruction waits for {variable}, on which the {culprit} at {culprit_at} arrives",
    "wait for {variable} before the {writer_role} at {writer_at} of the next round (mbarrier.try_wait.parity with parity 1, which passes in"
    " the first round, then 0, and so on): the {culprit} at {culprit_at} arrives on it, and nobody waits",
)
_CONSTANT: Final = (
    "the {culprit} at {culprit_at} asks for parity {asked} in each round: while a phase of the other parity is under way, it returns at"
    " once",
    "let the parity of the wait at {culprit_at} change from round to round: {begin} in the first one, then {other}, and so on (phase ^= 1)",
)
_EARLIER: Final = "the {culprit} at {culprit_at} was not for {group}, but for an earlier phase, or for the mbarrier of another stage"
# The counter of a ring of n stages goes once round in n steps.
_FOLLOW: Final = (
    "wait at {culprit_at} for {group}: at the mbarrier of the stage that {second_at} reads, and with a parity that changes each time that"
    " this mbarrier comes round again, and not before ((step / stages) & 1 in a ring, counted on from one loop to the next)"
)
_ALONE: Final = (
    "the {culprit} at {culprit_at} announces the bytes of the {copy_role} at {copy_at}, and its thread does not arrive behind it: what"
    " arrives at {arrivals_at} may end the phase before, and then the bytes belong to the next one",
    "let the thread of {culprit_at} arrive when it announces (mbarrier.arrive.expect_tx), and initialise the mbarrier with a count that"
    " includes this arrival",
)
_RACES: Final = (
    (
        _CTA + _ENGINES,
        warp_barrier,
        "the {culprit} at {culprit_at} orders the lanes of one warp only",
        "replace the {culprit} at {culprit_at} by {cta_barrier}, where all its threads reach it",
    ),
    (("no-barrier",), late_hand_over, *_LATE),
    (("no-barrier", "refilled-too-early"), *EARLY_RELEASE),
    ((*_CTA, "operation-unordered"), published_early, *_EARLY),
    (
        _CTA + _ENGINES,
        two_barriers,
        "{one}, {other}: that orders nothing between them",
        "use one barrier id for the two groups of threads, at {both_at}, with a thread count that covers both",
    ),
    (
        _CTA + _ENGINES,
        arrives_only,
        "the {culprit} at {culprit_at} arrives and does not wait: the thread of (2) goes on at once",
        "wait at {culprit_at} with bar.sync of the same id and count",
    ),
    (
        _CTA + _ENGINES,
        passed_by,
        "{absent} does not execute the {culprit} at {culprit_at} in between",
        "let the threads of both sides pass the {culprit} at {culprit_at}, or put {cta_barrier} after {first_at} and before {second_at}",
    ),
    (
        _CTA + _ENGINES,
        too_few,
        "the {culprit} at {culprit_at} joins {threads} threads at a time, and those of (1) and (2) passed it in different rounds",
        "let the barrier at {culprit_at} count all threads of both sides: {cta_barrier}, or a larger thread count",
    ),
    (
        _CTA + _ENGINES,
        in_branch,
        "the {culprit} at {culprit_at} is in a branch, and the threads of (1) and (2) did not both pass it in between",
        "move the {culprit} at {culprit_at} out of its branch, so that all threads pass it{in_between}",
    ),
    (
        ("no-barrier", "no-warp-sync"),
        relaxed("after_first", is_arrival),
        "the {culprit} at {culprit_at} is relaxed: what came before it is not released",
        "write .release (the default) instead of .relaxed on the arrival at {culprit_at}",
    ),
    (
        ("no-barrier", "no-warp-sync"),
        relaxed("before_second", is_phase_wait),
        "the {culprit} at {culprit_at} is relaxed: what comes after it acquires nothing",
        "write .acquire (the default) instead of .relaxed on the wait at {culprit_at}",
    ),
    (
        ("cluster",),
        relaxed("after_first", lambda point: point.row.is_cluster_barrier and point.row.arrives_only),
        "the {culprit} at {culprit_at} is relaxed: what came before it is not released",
        "write barrier.cluster.arrive.release (the default) at {culprit_at}",
    ),
    (("cluster",), late_cluster_wait, *_LATE),
    (
        ("no-barrier",),
        orders_nothing(lambda point: point.row.is_fence),
        "the {culprit} at {culprit_at} is a fence: it makes no thread wait for another",
        "put {cta_barrier} beside the {culprit} at {culprit_at}, or in its place",
    ),
    (
        ("no-warp-sync",),
        orders_nothing(lambda point: point.row.exchanges),
        "the {culprit} at {culprit_at} exchanges registers and orders no memory",
        "put {warp_barrier} beside the {culprit} at {culprit_at}: after {first_at} and before {second_at}",
    ),
    (("refilled-too-early",), announced_alone, *_ALONE),
    (("refilled-too-early",), constant_parity_of_first, *_CONSTANT),
    ((*_CTA, "operation-unordered", "cluster", "refilled-too-early"), heard_by_nobody, *_UNHEARD),
    *REFILLS,
    (
        ("no-barrier",),
        other_arrival,
        "the {culprit} at {culprit_at} waits for another phase than the one that the {the_arrival} at {arrival_at} is part of",
        "wait at {culprit_at} on the mbarrier of {arrival_at}, with the parity of the phase that this arrival completes",
    ),
    (
        ("no-barrier",),
        not_waited_for,
        "the {culprit} at {culprit_at} arrives, and its thread does not wait for that phase on every path to (2)",
        "wait for the phase of the {culprit} at {culprit_at} before {second_at} ({mbarrier_wait}; with the token of the arrival)",
    ),
)
_WAITS: Final = (
    ((SIGNALLED_COPY,), published_early, *_EARLY),
    (
        ("not-committed", "global-not-committed", "not-waited"),
        commit_after_wait,
        "the {culprit} at {culprit_at} comes after the {the_wait} at {wait_at}, which waits for committed groups only",
        "move the {culprit} at {culprit_at} before the {the_wait} at {wait_at}",
    ),
    (
        ("not-waited", "global-not-waited"),
        waits_for_own,
        "the {culprit} at {culprit_at} waits for the groups of its own thread only, and no barrier comes after it",
        "put {cta_barrier} after the {culprit} at {culprit_at} and before {second_at}",
    ),
    (
        _GROUPS,
        leaves,
        "the {culprit} at {culprit_at} lets the {newest} stay in flight, and this {operation} is in {one_of_these}",
        "wait with {wait} ({wait_cpp}) at {culprit_at} instead of {number}",
    ),
    (
        ("not-committed", "global-not-committed"),
        never_committed,
        "the {culprit} at {culprit_at} waits for committed groups only",
        "put {commit} after {first_at} and before the {culprit} at {culprit_at}",
    ),
    (
        (*_SHARED_GROUPS, "global-not-waited"),
        not_by_issuer,
        "{issuer}, which executed {first_at}, does not execute the {culprit} at {culprit_at}, which waits for the groups"
        " of its own thread only",
        "execute the {culprit} at {culprit_at} in every thread that executes {first_at}",
    ),
    (
        _GROUPS,
        late_wait,
        "the {culprit} at {culprit_at} comes only after the {second_role}",
        "move the {culprit} at {culprit_at} {before}",
    ),
    (
        _SHARED_GROUPS,
        barrier_without_wait,
        "the {culprit} at {culprit_at} orders threads and does not wait for the {operation}",
        "wait with {wait} ({wait_cpp}) in the thread that executes {first_at},{after} before {by}",
    ),
    (
        ("waited-no-barrier",),
        relaxed("before_second", is_phase_wait),
        "the {culprit} at {culprit_at} is relaxed: what comes after it acquires nothing",
        "write .acquire (the default) instead of .relaxed on the wait at {culprit_at}",
    ),
    (
        ("waited-no-barrier", "global-waited-no-barrier"),
        barrier_before_wait,
        "the {culprit} at {culprit_at} comes before the {the_wait} at {wait_at}, and no barrier comes after it",
        "move the {culprit} at {culprit_at} after the {the_wait} at {wait_at}",
    ),
    (
        ("waited-no-barrier", "global-waited-no-barrier"),
        wait_of_another,
        "{absent} does not execute the {culprit} at {culprit_at}, and no barrier comes after it",
        "put {cta_barrier} after the {culprit} at {culprit_at} and before {second_at}, or let all threads wait there",
    ),
    (
        ("global-read-wait-only",),
        source_only,
        "the {culprit} at {culprit_at} waits until the source has been read, not until the result is written",
        "write cp.async.bulk.wait_group without .read at {culprit_at}, in the thread that issued the copy, and {cta_barrier} after it",
    ),
    (
        ("other-issuer", "global-other-issuer"),
        foreign_wait,
        "the {culprit} at {culprit_at} waits for the groups of the threads that execute it only",
        "execute the {culprit} at {culprit_at} in the thread that executed {first_at}, then {cta_barrier}, before {second_at}",
    ),
    ((SIGNALLED_COPY, "not-waited", "waited-no-barrier"), late_phase_wait, *_LATE),
    (("not-waited",), announced_alone, *_ALONE),
    (("not-waited", "waited-no-barrier"), constant_parity_of_first, *_CONSTANT),
    (("not-waited", "refilled"), constant_parity, *_CONSTANT),
    (("not-waited",), heard_by_nobody, *_UNHEARD),
    *OVERTAKEN_WAITS,
    (("not-waited",), phase_in_loop, _EARLIER, _FOLLOW),
    *OTHER_WAITS,
    (("refilled",), *EARLY_RELEASE),
    (("refilled",), *LONE_RELEASE),
    (("refilled",), heard_by_nobody, *_UNHEARD),
    (
        ("refilled",),
        freeing,
        "the {culprit} at {culprit_at} has let the {first_role} at {first_at} begin",
        "if {second_at} uses bytes of an earlier phase, let the {culprit} at {culprit_at} come behind the last use of these bytes; if it"
        " uses what {group} brings, wait with {wait} ({wait_cpp}) before {second_at}",
    ),
    (
        ("refilled",),
        phase_in_loop,
        _EARLIER,
        f"if {{second_at}} uses what {{group}} brings, {_FOLLOW}; if it uses bytes of an earlier phase, let the copy at {{first_at}} wait"
        " until {second_at} is over",
    ),
)
_FENCES: Final = (
    (
        ("no-proxy-fence", "global-no-proxy-fence"),
        of_other_space,
        "the {culprit} at {culprit_at} is for {space} memory, and the bytes are in {own} memory",
        "write fence.proxy.async without a space, or that of {own} memory, at {culprit_at}",
    ),
    (
        ("no-proxy-fence", "global-no-proxy-fence"),
        fence_of_some,
        "the {culprit} at {culprit_at} is in a branch or loop, and neither the thread of (1) nor that of (2) executed it in between",
        "move the {culprit} at {culprit_at} out of its branch or loop, and before {barrier}: every thread that executes"
        " {first_at} needs it",
    ),
    (
        ("no-proxy-fence",),
        fence_before_wait,
        "the {culprit} at {culprit_at} comes before the {the_wait} at {wait_at}: the bytes may not be there yet",
        "move the {culprit} at {culprit_at} after the {the_wait} at {wait_at}",
    ),
    (
        ("no-proxy-fence", "global-no-proxy-fence"),
        fence_before,
        "the {culprit} at {culprit_at} comes before the {first_role} at {first_at}, not after it",
        "move the {culprit} at {culprit_at} after the {first_role} at {first_at}, before the barrier that orders {second_at}",
    ),
    (
        ("no-proxy-fence", "global-no-proxy-fence"),
        thread_fence,
        "the {culprit} at {culprit_at} is for the generic proxy only",
        "put fence.proxy.async beside the {culprit} at {culprit_at}, in every thread that writes",
    ),
    (
        ("no-proxy-fence",),
        unfenced,
        "the {culprit} at {culprit_at} orders the threads only",
        "put fence.proxy.async.shared::cta ({proxy_fence}) after {after} and before the {culprit} at {culprit_at}, in every thread that"
        " executes {first_at}",
    ),
    (
        ("writer-no-fence",),
        fence_after_barrier,
        "the {culprit} at {culprit_at} comes after the {the_barrier} at {barrier_at}",
        "move the {culprit} at {culprit_at} before the {the_barrier} at {barrier_at}, into every thread that writes",
    ),
)
_EXITS: Final = (
    (
        ("exit",),
        leaves_last,
        "the {culprit} at {culprit_at} leaves {groups} in flight",
        "wait with {wait_zero} at {culprit_at} instead of {number}",
    ),
    (
        ("exit",),
        commit_after_wait,
        "the {culprit} at {culprit_at} comes after the {the_wait} at {wait_at}, which waits for committed groups only",
        "move the {culprit} at {culprit_at} before the {the_wait} at {wait_at}",
    ),
    (
        ("exit",),
        committed_only,
        "no wait follows the {culprit} at {culprit_at}",
        "wait with {wait_zero} after the {culprit} at {culprit_at}, in the same thread",
    ),
)
_SCOPES: Final = (
    (
        ("arrive-scope",),
        released_at_cta,
        "the {culprit} at {culprit_at} releases at .cta scope",
        "write mbarrier.arrive.release.cluster.shared::cluster at {culprit_at}{acquire_too}",
    ),
    (
        ("wait-scope",),
        of_cta_scope("before_second", is_phase_wait),
        "the {culprit} at {culprit_at} acquires at .cta scope",
        "write .acquire.cluster on the wait at {culprit_at}",
    ),
    (
        ("arrive-scope",),
        narrow_fence("after_first"),
        "the {culprit} at {culprit_at} is a fence of .cta scope",
        "write fence.acq_rel.cluster, or __threadfence(), in place of the {culprit} at {culprit_at}",
    ),
    (
        ("wait-scope",),
        narrow_fence("before_second"),
        "the {culprit} at {culprit_at} is a fence of .cta scope",
        "write fence.acq_rel.cluster, or __threadfence(), in place of the {culprit} at {culprit_at}",
    ),
)
_GLOBAL: Final = (
    (
        ("no-synchronisation", "no-synchronisation/WAW", "released-before"),
        ends_early,
        "the {culprit} at {culprit_at} waits for the counter to which each CTA adds at {arrival_at}, and has ended before the other CTA"
        " has added its own: the value that it waits for is too small",
        "let the wait at {culprit_at} go on until all CTAs have added to the counter at {arrival_at}: as many as wait for each other, times"
        " the rounds so far",
    ),
)
RULES: Final = tuple(
    CulpritRule(kind, *row)
    for kind, rows in (
        *(("data-race", _RACES), ("missing-wait", _WAITS), ("missing-proxy-fence", _FENCES)),
        *(("scope", _SCOPES), ("lifetime", _EXITS), ("global-race", _GLOBAL)),
    )
    for row in rows
)
