"""The culprits of racy twins and what is said of them: what stands between the accesses, or should have ended the wait.

A row of a race: the twin; what the culprit's line holds; what the message says of it; what the fix asks for.
"""

from __future__ import annotations

CULPRITS = (
    ("warp_private_regions", "__syncwarp", "orders the lanes of one warp only", "replace the __syncwarp() at"),
    ("named_barrier_wrong_id", "bar.sync", "waits at named barrier", "use one barrier id"),
    ("named_barrier_arrive_is_no_wait", "bar.arrive", "arrives and does not wait", "wait at named_barrier_arrive_is_no_wait.cu:17"),
    ("named_barrier_early_release", "ARRIVE(EMPTY)", "comes before the read at named_barrier_early", "move the"),
    ("named_barrier_early_publication", "ARRIVE(FULL)", "publishes only what came before it", "move the bar.arrive 1, 64 at"),
    ("named_barrier_early_publication_unrolled", 'ARRIVE("1")', "publishes only what came before it", "move the bar.arrive 1, 64 at"),
    ("named_barrier_turns", "gives the turn away", "comes before the read at named_barrier_turns", "move the bar.arrive at"),
    ("write_before_exit", "__syncthreads()", "does not execute the __syncthreads()", "pass the __syncthreads()"),
    ("named_barrier_partial", "bar.sync 1", "does not execute the bar.sync 1", "pass the bar.sync 1"),
    ("reduction_last_levels", "__syncthreads()", "did not both pass it", "out of its branch"),
    ("fence_is_not_a_barrier", "__threadfence_block", "makes no thread wait", "put __syncthreads() beside"),
    ("shuffle_is_not_a_fence", "sync", "exchanges registers and orders no memory", "put __syncwarp() beside"),
    ("mbarrier_relaxed_arrive", "RELAXED", "is relaxed", "write .release"),
    ("mbarrier_relaxed_wait", "RELAXED", "is relaxed", "write .acquire"),
    ("mbarrier_relaxed_wait_for_copy", "RELAXED", "acquires nothing", "write .acquire"),
    ("mbarrier_released_early", "ARRIVE(&empty)", "comes before the read", "move the mbarrier.arrive"),
    ("mbarrier_leader_releases_early", "ARRIVE(&empty)", "comes before the read", "with __syncwarp() between the two"),
    ("mbarrier_leader_reads_late", "ARRIVE(&empty)", "comes before the read", "with __syncwarp() between the two"),
    ("cp_async_waits_for_own", "wait_group", "its own thread only, and no barrier comes after it", "put __syncthreads() after the"),
    ("mbarrier_copies_arrive_early", "COPIES_ARRIVE_NOINC", "signals only the copies that came", "after the asynchronous copy at"),
    ("bulk_store_arrive_before_fill", "arrive(full)", "publishes only what came before it", ", with fence.proxy.async between the two"),
    ("mbarrier_lanes_release", "ARRIVE(&empty)", "comes before the read", "move the mbarrier.arrive"),
    ("mbarrier_wrong_parity", "WAIT", "does not wait for phase 0", "which has parity 0"),
    ("mbarrier_parity_constant", "WAIT", "asks for parity 0 in each round", "change from round to round"),
    ("mbarrier_parity_of_step", "WAIT(&full", "but for an earlier phase", "(step / stages) & 1 in a ring"),
    ("mbarrier_arrival_not_waited", "ARRIVE(&bar)", "does not wait for that phase on every path", "wait for the phase of the"),
    ("bulk_bytes_announced_behind_arrival", "EXPECT_TX", "does not arrive behind it", "a count that includes this arrival"),
    (
        "mbarrier_number_read_before_wait",
        "WAIT(&known",
        "comes only after the read",
        "before the read at mbarrier_number_read_before_wait.cu",
    ),
    ("bulk_load_waited_late", "WAIT(&b_full", "comes only after the read", "before the read at bulk_load_waited_late.cu"),
    ("mbarrier_warp_waits", "WAIT(&full", "does not execute the mbarrier.try_wait", "__syncthreads()"),
    ("cluster_relaxed_arrive", "relaxed", "is relaxed", "barrier.cluster.arrive.release"),
    ("cluster_read_before_split_wait", "barrier.cluster.wait", "comes only after the read", "move the barrier.cluster.wait"),
    ("cluster_arrive_cta_scope", "", "releases at .cta scope", "mbarrier.arrive.release.cluster"),
    ("cluster_wait_cta_scope", "", "acquires at .cta scope", "write .acquire.cluster"),
    ("cp_async_off_by_one", "WAIT", "wait_group 2 at cp_async_off_by_one.cu:30 lets the 2 newest groups", "instead of 2"),
    ("cp_async_wait_before_commit", "commit", "comes after the cp.async.wait_group 0", "before the cp.async.wait_group 0"),
    ("cp_async_never_committed", "wait", "waits for committed groups only", "put cp.async.commit_group after"),
    ("cp_async_waited_all_late", "WAIT_ALL", "its own thread only, and no barrier comes after it", "put __syncthreads() after the"),
    ("cp_async_arrival_at_issue", "ARRIVE(&full", "comes when the asynchronous copy is issued", "use cp.async.mbarrier.arrive.noinc on"),
    ("cp_async_fence_before_wait", "fence_async_shared", "comes before the cp.async.wait_all at", "after the cp.async.wait_all at"),
    ("cp_async_fenced_not_waited", "__syncthreads()", "does not wait for the cp.async", "and before the fence.proxy.async"),
    ("../blackwell/operand_freed_at_issue", "arrive(s.empty)", "comes when the tcgen05.mma is issued", "use tcgen05.commit on the same"),
    ("ring_parity_constant_in_structure", "wait(s.empty", "asks for parity 1 in each round", "1 in the first one, then 0, and so on"),
    ("ring_parity_of_lap_in_structure", "wait(s.empty", "has let the copy begin before", "changes each time that this mbarrier"),
    ("cp_async_wait_by_other_thread", "wait", "does not execute the cp.async.wait_group 0", "in every thread that executes"),
    ("bulk_store_wait_by_other", "bulk_wait_read", "which waits for the groups of its own thread only", "in every thread that executes"),
    ("bulk_store_wait_no_barrier", "__syncthreads()", "comes before the cp.async.bulk.wait_group.read 0", "move the __syncthreads()"),
    ("bulk_result_read_wait", "bulk_wait_read", "until the source has been read", "without .read"),
    ("bulk_result_wait_no_barrier", "__syncthreads()", "and no barrier comes after it", "move the __syncthreads()"),
    ("wgmma_epilogue_over_operand", "wgmma_wait<1>", "wgmma.wait_group 1 at wgmma_epilogue_over_operand.cu", "instead of 1"),
    ("global_store_fence_too_early", "fence_async_global", "comes before the write", "move the fence.proxy.async.global"),
    ("global_store_no_proxy_fence", "fence_async_shared", "is for shared memory", "that of global memory"),
    ("tma_fence_by_all_but_issuer", "fence_async_shared", "is in a branch or loop", "out of its branch or loop"),
    ("wgmma_filled_no_fence", "arrive(full[k])", "orders the threads only", "before the mbarrier.arrive"),
    (
        "../blackwell/arrived_at_issue_in_structure",
        "arrive(s.full)",
        "comes when the tcgen05.mma is issued",
        "use tcgen05.commit on the same",
    ),
    ("../blackwell/stale_parity_of_two_commits", "PARITY", "does not wait for phase 0 of the mbarrier full", "wait at stale_parity_of_two"),
    ("../blackwell/operand_freed_between_products", "commit_to", "has let the bulk load at", "come behind the last use of these bytes"),
    ("../blackwell/other_wait_in_structure", "wait(s.free", "waits for another mbarrier, bytes 6152", "before other_wait_in_structure.cu"),
    ("tma_epilogue_issuer_fences", "fence_async_shared", "comes after the __syncthreads()", "before the __syncthreads()"),
)

#: The same where the finding has one access or none waited: number of accesses, then as above.
EARLY = (
    ("wgmma_operand_overwritten", 3, "wgmma_wait<0>", "comes only after the write", "before the __syncthreads() at"),
    ("mbarrier_wrong_parity", 4, "ARRIVE(&full)", "comes too late for this wait", "move it before the barrier at"),
    ("bulk_store_source_overwritten", 3, "__syncthreads", "does not wait for the bulk store", "after the cp.async.bulk.commit_group at"),
    ("bulk_store_at_exit", 2, "bulk_commit", "no wait follows the cp.async.bulk.commit_group", "in the same thread"),
    ("cp_async_at_exit", 2, "WAIT(1)", "leaves the last group in flight", "instead of 1"),
    ("wgmma_no_proxy_fence", 3, "__syncthreads", "orders the threads only", "before the __syncthreads() at"),
    ("cp_async_then_bulk_store", 3, "__syncthreads", "orders the threads only", "after the cp.async.wait_all at"),
    ("uninitialized_tail", 2, "tile[", "tile is written at uninitialized_tail.cu", "also write the rest of what uninitialized_tail.cu:"),
    ("bulk_store_uninitialised", 2, "tile[", "some of them, such as tile[48..51]; tile is written at", "write all 256 bytes that"),
)

#: The twin; the lines of the culprits (a part of each); what is missing; what the fix asks for.
DEADLOCKS = (
    ("deadlock_wrong_count", ("INIT(&bar, COUNT)", "ARRIVE(&bar)"), "124 of the 128 arrivals", "initialise bar with 4 at"),
    (
        "deadlock_trip_counts",
        ("ARRIVE_EXPECT(&full", "k < 4", "k < TILES_READ"),
        "for phase 4 of full: none came",
        "the loop at deadlock_trip_counts.cu:27 completed 4 phases and then ended, while the loop at deadlock_trip_counts.cu:35 waits",
    ),
    ("deadlock_no_drop", ("ARRIVE(&bar)", "INIT(&bar, 64)"), "32 of 64 arrivals", "mbarrier.arrive_drop"),
    ("deadlock_missed_phase", ("ARRIVE(&full)", "ARRIVE(&full)"), "for phase 2 of full", "while this wait is for phase 2"),
    ("deadlock_copies_counted_twice", ("COPIES_ARRIVE(&full)",), "32 of 32 arrivals", "use cp.async.mbarrier.arrive.noinc"),
    ("deadlock_copies_counted_in_ring", ("COPIES_ARRIVE(&full",), "32 of 32 arrivals", "use cp.async.mbarrier.arrive.noinc"),
    ("bulk_bytes_never_come", ("", ""), "expect_tx announced 272, the copy brought 256", "announce 16 bytes fewer"),
    ("bulk_bytes_of_short_tile", ("// announced", "// copied"), "224 bytes (the mbarrier full", "announce 224 bytes fewer for phase 3 at"),
    (
        "named_barrier_deadlock",
        ("bar.arrive",),
        "32 of the 64 threads that barrier 1 counts",
        "is on barrier 2: if it is meant for barrier 1",
    ),
    ("deadlock_first_parity", ("^ FIRST",), "a first wait for empty that passes", "begin with parity 1, which passes on a new mbarrier"),
    (
        "../blackwell/deadlock_first_accumulator",
        ("^ FIRST",),
        "a first wait for taken_out that passes: its phase 0 ends only behind the wait for done",
        "begin with parity 1, which passes on a new mbarrier",
    ),
    ("deadlock_count_of_all", ("INIT(&left", "ARRIVE(&left)"), "32 of the 96 arrivals", "initialise left with 64 at"),
    (
        "deadlock_bytes_before_end",
        (),
        "128 bytes (the mbarrier at bytes 256",
        "make expect_tx the bytes that the copies of one phase write",
    ),
    ("deadlock_missing_warps", (), "32 of the 96 threads that barrier 1 counts", "let 32 more threads reach barrier 1"),
    (
        "deadlock_flag_set_too_late",
        ("atomicExch(&ready, 1)",),
        "a write of ready that comes before the barrier at",
        "move the write at deadlock_flag_set_too_late.cu:20 before the barrier at deadlock_flag_set_too_late.cu:18",
    ),
)

#: The text does not decide the one repair of these deadlocks: the words of the catalogue stay.
WITHOUT = ("deadlock_crossed_barriers", "deadlock_mixed_waits", "deadlock_lock_not_released")
