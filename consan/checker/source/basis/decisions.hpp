// The decisions of the rules, by name: what orders (Edge), whom a scope includes (Inclusion), and why something is a finding (Reason, in layouts.hpp).
// Each passes `decided`, so that a fault in it can be planted wherever its text stands. The condition says when the decision holds.
#pragma once

#include "decided.hpp"
#include "types.hpp"

// What makes an edge of happens-before, or carries one on.
enum class Edge : u32 {
    CTA_BARRIER,
    WARP_BARRIER,
    CLUSTER_BARRIER,
    MBARRIER_ARRIVAL,      // the arrival publishes
    MBARRIER_PHASE,        // who waits takes what the arrivals of the phase have published
    MBARRIER_INIT_FENCE,   // fence.mbarrier_init covers initialisations
    RELEASE,               // within a cluster: the operation is a release
    ACQUIRE,               // the same: an acquire
    RELEASE_FENCE,         // the same: a fence before a relaxed write
    ACQUIRE_FENCE,         // the same: a fence behind a relaxed read
    PRODUCTS_SIGNALLED,    // a release publishes that groups of products are over
    COPY_WAIT,             // cp.async: another thread is behind the issuer's wait
    COPY_PHASE,            // cp.async: complete with a phase of an mbarrier
    BULK_RESULTS,          // cp.async.bulk.wait_group: results are there
    BULK_SOURCES,          // the same: sources have been read
    TENSOR_WAIT,           // tcgen05.wait
    TENSOR_USE,            // the registers of a tcgen05.ld are used (T2)
    TENSOR_COMMIT,         // tcgen05.commit
    TENSOR_FENCE_BEFORE,   // tcgen05.fence::before_thread_sync
    TENSOR_FENCE_AFTER,    // tcgen05.fence::after_thread_sync
    GLOBAL_RELEASE,        // in the launch: the write is a release
    GLOBAL_ACQUIRE,        // the same: the read is an acquire
    GLOBAL_RELEASE_FENCE,  // the same: a fence before a relaxed write
    GLOBAL_ACQUIRE_FENCE,  // the same: a fence behind a relaxed read
    READ_MODIFY_WRITE,     // it hands on what the write before it has released (R-GM4)
    FENCE_SC,              // a fence.sc takes what is behind one that an observation has passed (R-GM6)
    FENCE_SC_ACQUIRE,      // the same of an acquire
    OBSERVED,              // a write that an observation has seen comes before what follows it (R-GM8)
    VALUE_IS_USED,         // nothing is learnt by a value that nothing reads (R-GM8)
    ANNOTATION,            // an annotated acquire takes what annotated releases have left
    GRID_WAIT,             // an access is behind griddepcontrol.wait
    RANK_BEGIN,            // a rank has begun before an access
    RANK_END,              // a rank ends behind an access
    FENCE_OF_PUTS,         // a fence is one of puts (R-RK4)
    PUT_IS_THERE,          // what was put before such a fence is behind it for the rank that is signalled
    OWN_PUTS,              // a put has its own signal
    PEER_ACQUIRE,         // a strong read acquires what another GPU has released
    PEER_RELEASE,         // a strong write releases for another GPU
};

// Whom a scope includes. It holds where the other thread, or every CTA, is in the scope.
enum class Inclusion : u32 {
    RELEASE,           // a release within a cluster: other CTAs
    ACQUIRE,           // an acquire within a cluster: other CTAs
    FENCE,             // a release fence within a cluster: other CTAs
    ANY_RELEASE,       // the replay takes every scope as wide (Level)
    ANY_WAIT,          // the same of waits
    COMPLETION,        // an acquire of the completion by another CTA's copy (D5)
    STRONG,            // of two strong accesses
    GLOBAL_FLAG,       // of a write and of what reads it
    GLOBAL_SEQUENCE,   // of a write and the read-modify-write behind it
    GLOBAL_RELEASE,    // of a release, the thread that acquires
    GLOBAL_ACQUIRE,    // of an acquire, the thread that has released
};
