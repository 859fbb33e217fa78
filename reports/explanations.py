"""The long text of each kind: what it means, the section of the PTX ISA, a racy and a fixed example, how to fix it.

`consan explain KIND` prints these pages. The examples of the kinds that this version reports are whole kernels: the tests
run both and expect the finding from the first and none from the second. Section numbers are those of PTX ISA 9.1.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Final

from consan.reports.kinds import KINDS

WIDTH: Final = 90


@dataclass(frozen=True)
class Explanation:
    """One page. `launch` are the `consan check` options of the examples, where they are whole kernels."""

    about: str
    sections: tuple[str, ...]
    racy: str
    fixed: str
    repair: str
    launch: str = ""


EXPLANATIONS: Final[dict[str, Explanation]] = {
    "data-race": Explanation(
        about="""Two threads touch the same bytes, at least one of them writes, and nothing orders the two. Which one comes
            first is up to the hardware: the result can be right for years and wrong on the next chip. RAW: a read that may run
            before the write it needs. WAR: a write that may destroy a value before it has been read, most often because a loop
            refills a tile that other warps still use. WAW: two writes whose order is open. Between lanes of one warp the
            severity is warning: current hardware mostly runs them together, but nothing promises it.""",
        sections=("8.7.1 Conflict and Data-races", "8.9.4 Memory synchronization", "9.7.13.1 bar, barrier", "9.7.13.2 bar.warp.sync"),
        racy="""
            extern "C" __global__ void k(float* out) {
                __shared__ float tile[128];
                int t = threadIdx.x;
                tile[t] = t;
                out[t] = tile[127 - t];      // may read before its neighbour has written
            }""",
        fixed="""
            extern "C" __global__ void k(float* out) {
                __shared__ float tile[128];
                int t = threadIdx.x;
                tile[t] = t;
                __syncthreads();
                out[t] = tile[127 - t];
            }""",
        repair="""Put __syncthreads() between the two accesses, on a path that all threads of the CTA take; in a loop that fills
            and uses a tile there are two places, after the fill and after the use. Within one warp __syncwarp() is enough;
            shuffles, votes and __activemask() order no memory. For counters use atomics on both sides. With named barriers both
            groups of warps must name the same barrier and the same thread count.""",
        launch="--grid 1 --block 128 --arg f32[128]=zeros",
    ),
    "missing-wait": Explanation(
        about="""An asynchronous copy (cp.async, a bulk copy, an operand of wgmma) has been started, and the bytes are touched
            before the thread that touches them has learnt that the copy is complete. A barrier alone does not help: it orders
            what threads did, not what is still in flight. Three slips are common: no wait at all, a wait_group N that still
            allows the newest N groups to be in flight, and a wait before the commit, which covers nothing. A copy that nobody
            waits for can also land later, on top of whatever the memory is used for next.""",
        sections=(
            "8.9.1.1 Asynchronous Operations",
            "9.7.9.25.1 Completion Mechanisms",
            "9.7.9.25.3.3 cp.async.wait_group / cp.async.wait_all",
        ),
        racy="""
            #include <cuda_pipeline.h>
            extern "C" __global__ void k(const float4* in, float4* out) {
                __shared__ float4 tile[64];
                int t = threadIdx.x;
                __pipeline_memcpy_async(&tile[t], &in[t], 16);
                __pipeline_commit();
                __syncthreads();             // the copies may still be in flight
                out[t] = tile[63 - t];
            }""",
        fixed="""
            #include <cuda_pipeline.h>
            extern "C" __global__ void k(const float4* in, float4* out) {
                __shared__ float4 tile[64];
                int t = threadIdx.x;
                __pipeline_memcpy_async(&tile[t], &in[t], 16);
                __pipeline_commit();
                __pipeline_wait_prior(0);    // this thread's copies are complete ...
                __syncthreads();             // ... and now everybody knows it
                out[t] = tile[63 - t];
            }""",
        repair="""In the thread that issued the copies: commit, then wait with the N of a pipeline that is N groups deep, then a
            barrier for the other threads, then the access. Groups are counted for each thread, also empty ones: commit in every
            iteration, or lower N in the last ones. Before the shared memory is used for something else, wait with N = 0.""",
        launch="--grid 1 --block 64 --arg f32[256]=random --arg f32[256]=zeros",
    ),
    "uninitialized-read": Explanation(
        about="""Shared memory is read before anything in this CTA has written those bytes. The value is whatever the previous
            CTA on that multiprocessor left: often zero or yesterday's right answer, which is why such bugs hide. Typical: the
            halo of a tile, the tail of a partial tile, an accumulator that one branch forgets. When a write comes later without
            an order, consan reports the pair as the race that it is. Bytes that are loaded and provably not used are a note.""",
        sections=("8.2.6 Initialization", "5.1.7 Shared State Space"),
        racy="""
            extern "C" __global__ void k(const float* in, float* out) {
                __shared__ float tile[66];
                int t = threadIdx.x;
                tile[t + 1] = in[t];
                __syncthreads();
                out[t] = tile[t] + tile[t + 2];   // tile[0] and tile[65] were never written
            }""",
        fixed="""
            extern "C" __global__ void k(const float* in, float* out) {
                __shared__ float tile[66];
                int t = threadIdx.x;
                tile[t + 1] = in[t];
                if (t == 0) tile[0] = tile[65] = 0;
                __syncthreads();
                out[t] = tile[t] + tile[t + 2];
            }""",
        repair="""Write the bytes first: fill halos and tails with the neutral element, or guard the read with the condition that
            guarded the write.""",
        launch="--grid 1 --block 64 --arg f32[64]=random --arg f32[64]=zeros",
    ),
    "out-of-bounds": Explanation(
        about="""An access outside the shared memory of the CTA (static and dynamic together) or, on the CPU backend, outside
            every known allocation of global memory. On a GPU such a write can hit another array without any error.""",
        sections=("5.1.7 Shared State Space", "6.4.1.1 Generic Addressing"),
        racy="""
            extern "C" __global__ void k(float* out) {
                extern __shared__ float tile[];
                int t = threadIdx.x;
                tile[t + 1] = t;                  // the last thread writes past the end
                __syncthreads();
                out[t] = tile[t + 1];
            }""",
        fixed="""
            extern "C" __global__ void k(float* out) {
                extern __shared__ float tile[];
                int t = threadIdx.x;
                tile[t] = t;
                __syncthreads();
                out[t] = tile[t];
            }""",
        repair="""Check the index, the size given at launch (third argument of <<<...>>>, --smem), and padding that the index
            uses but the size forgets.""",
        launch="--grid 1 --block 64 --smem 256 --arg f32[64]=zeros",
    ),
    "barrier-misuse": Explanation(
        about="""A barrier is used against its own protocol. Named barriers (bar.sync id, count): the counts disagree, more
            threads arrive than the count allows, or an aligned barrier is reached by some lanes of a warp only. mbarrier: used
            before its init is visible, initialised twice, used as data, waited for on a phase that is neither the current nor
            the previous one. The hardware does not complain; it hangs or lets threads through too early.""",
        sections=("9.7.13.1 bar, barrier", "9.7.13.15.3 Lifecycle of the mbarrier object", "9.7.13.15.4 Phase of the mbarrier object"),
        racy="""
            if (warp < 2) asm volatile("bar.arrive 1, 96;" ::: "memory");   // producers say 96 threads
            else          asm volatile("bar.sync   1, 128;" ::: "memory");  // consumers say 128""",
        fixed="""
            if (warp < 2) asm volatile("bar.arrive 1, 128;" ::: "memory");
            else          asm volatile("bar.sync   1, 128;" ::: "memory");""",
        repair="""Give all that meet at a barrier the same id and the same count: every thread that arrives or waits, in whole
            warps. Keep __syncthreads() out of divergent branches. Initialise an mbarrier once, in one thread, with a barrier
            between the init and the first use, and invalidate it before its bytes are used for anything else.""",
    ),
    "deadlock": Explanation(
        about="""Threads wait for something that nobody can do any more: every thread that could still arrive at the barrier, or
            complete its bytes, has exited or is itself waiting. consan lists who waits where. A launch that --timeout ended is
            reported too, and says so: it may only have been slow.""",
        sections=("9.7.13.1 bar, barrier", "9.7.13.15.6 Phase Completion of the mbarrier object"),
        racy="""
            mbarrier_init(&full, 1);
            if (t == 0) {
                mbarrier_arrive_expect_tx(&full, 8192);    // but the copy below is 4096 bytes
                bulk_copy(tile, in, 4096, &full);
            }
            mbarrier_wait(&full, 0);                       // never completes""",
        fixed="""
            mbarrier_init(&full, 1);
            if (t == 0) {
                mbarrier_arrive_expect_tx(&full, 4096);
                bulk_copy(tile, in, 4096, &full);
            }
            mbarrier_wait(&full, 0);""",
        repair="""Make the counts right: the arrivals of the init, the bytes of expect_tx, the threads of a named barrier, and the
            number of iterations on the two sides of a pipeline.""",
    ),
    "missing-proxy-fence": Explanation(
        about="""Shared memory is reached on two ways: the generic proxy (ordinary loads and stores) and the async proxy (bulk
            and tensor copies, operands of wgmma). A barrier orders the accesses, but does not make what one way wrote visible
            to the other: that needs a proxy fence, executed by the thread that wrote.""",
        sections=("8.6 Proxies", "9.7.9.25.2 Async Proxy", "9.7.13.4 membar/fence"),
        racy="""
            tile[t] = value;                               // generic proxy
            __syncthreads();
            if (t == 0) bulk_store(out, tile, bytes);      // async proxy reads stale data""",
        fixed="""
            tile[t] = value;
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncthreads();
            if (t == 0) bulk_store(out, tile, bytes);""",
        repair="""Put fence.proxy.async into every thread that wrote, between its last write and the barrier. No fence is needed
            in the other direction once the completion has been observed.""",
    ),
    "scope": Explanation(
        about="""The right edge is there, but its scope is too narrow: an arrive or a wait with the default .cta scope does not
            order threads of two CTAs of a cluster, and one with .cluster does not reach other clusters.""",
        sections=("8.5 Scope", "9.7.13.15.13 mbarrier.arrive", "9.7.13.15.16 mbarrier.test_wait / mbarrier.try_wait"),
        racy="""
            asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" :: "r"(remote_barrier) : "memory");""",
        fixed="""
            asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                         :: "r"(remote_barrier) : "memory");     // and .acquire.cluster on the wait""",
        repair="""Widen the scope on both sides of the edge: the release and the acquire must each include the other thread.""",
    ),
    "lifetime": Explanation(
        about="""Shared memory is used outside the life of its CTA: a peer of the cluster reads it before it has started or after
            it may have exited, or an asynchronous copy is still in flight when the CTA ends.""",
        sections=("5.1.7 Shared State Space", "9.7.13.3 barrier.cluster"),
        racy="""
            float* peer = cluster.map_shared_rank(tile, 1);
            out[t] = peer[t];                              // the peer may not run yet, or no more""",
        fixed="""
            cluster.sync();                                // all CTAs run, and have written their tiles
            out[t] = peer[t];
            cluster.sync();                                // nobody leaves while others still read""",
        repair="""One cluster barrier before the first remote access and one after the last. Wait for all copies before returning.""",
    ),
    "register-hazard": Explanation(
        about="""wgmma.mma_async reads and writes registers while the warp goes on. Touching its accumulators or its A fragment
            before the wait, or leaving out wgmma.fence before the first one, is undefined.""",
        sections=("9.7.15.7.1 wgmma.fence", "9.7.15.7.3 wgmma.wait_group"),
        racy="""
            warpgroup_arrive();
            wgmma(acc, desc_a, desc_b);
            warpgroup_commit_batch();
            out[t] = acc[0];                               // still being written""",
        fixed="""
            warpgroup_arrive();
            wgmma(acc, desc_a, desc_b);
            warpgroup_commit_batch();
            warpgroup_wait<0>();
            out[t] = acc[0];""",
        repair="""wgmma.fence before the first mma_async, commit, and wgmma.wait_group before the registers are used.""",
    ),
    "global-race": Explanation(
        about="""CTAs touch the same global memory, at least one writes, and nothing orders them. Only the end of a kernel orders
            all CTAs; within one, it takes atomics, or a release and an acquire at .gpu scope.""",
        sections=("8.7.1 Conflict and Data-races", "8.8 Release and Acquire Patterns"),
        racy="""
            partial[blockIdx.x] = sum;
            if (t == 0 && atomicAdd(count, 1) == gridDim.x - 1)
                finish(partial);                           // the other CTAs' writes may not be visible""",
        fixed="""
            partial[blockIdx.x] = sum;
            __threadfence();
            if (t == 0 && atomicAdd(count, 1) == gridDim.x - 1) {
                __threadfence();
                finish(partial);
            }""",
        repair="""__threadfence() on both sides of the flag or counter, or cuda::atomic_ref with release and acquire.""",
    ),
}


def page(kind_id: str) -> str:
    """The page of one kind as text."""
    kind, explanation = KINDS[kind_id], EXPLANATIONS[kind_id]
    blocks = (
        f"{kind.id}: {kind.title} ({kind.severity})",
        _fill(explanation.about),
        "PTX ISA: " + _fill("; ".join(explanation.sections), len("PTX ISA: ")),
        "Wrong:\n\n" + _code(explanation.racy),
        "Right:\n\n" + _code(explanation.fixed),
        "How to fix it: " + _fill(explanation.repair, len("How to fix it: ")),
        *([f"Try it: consan check FILE.cu {explanation.launch}"] if explanation.launch else []),
    )
    return "\n\n".join(blocks) + "\n"


def summary() -> str:
    """One line a kind."""
    width = max(map(len, KINDS))
    lines = [f"  {kind.id:<{width}}  {kind.title} ({kind.severity})" for kind in KINDS.values()]
    return "Kinds of findings; `consan explain KIND` tells more:\n" + "\n".join(lines) + "\n"


def _fill(text: str, used: int = 0) -> str:
    filled = textwrap.fill(" ".join(text.split()), WIDTH, initial_indent=" " * used)
    return filled[used:]


def _code(text: str) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")
