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
            refills a tile that other warps still use: by itself, or with
            a bulk copy that is issued before the consumers have released the stage (the "empty" mbarrier of a pipeline). WAW: two
            writes whose order is open. Between lanes of one warp the
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
            groups of warps must name the same barrier and the same thread count. In a pipeline every consumer arrives on the
            stage's empty mbarrier after its last read, and the producer waits for that phase before it refills.""",
        launch="--grid 1 --block 128 --arg f32[128]=zeros",
    ),
    "missing-wait": Explanation(
        about="""An asynchronous operation (cp.async, a bulk or tensor copy, the operands of wgmma) has been started, and the bytes
            are touched before the thread that touches them has learnt that it is complete. A barrier alone does not help: it
            orders what threads did, not what is still in flight. Common slips: no wait at all, a wait_group N that still allows
            the newest N groups to be in flight, a wait before the commit, which covers nothing, a wait by a thread that did not
            issue the copy (groups belong to the thread), the wrong parity of an mbarrier, a wait by one thread that nobody else
            is told of. A bulk store or wgmma still reads its bytes until then: writing over them is the same slip. When only other
            lanes of the warp have waited the severity is warning: __syncwarp() is missing.""",
        sections=(
            "8.9.1.1 Asynchronous Operations",
            "9.7.9.25.1 Completion Mechanisms",
            "9.7.9.25.3.3 cp.async.wait_group / cp.async.wait_all",
            "9.7.13.15.16 mbarrier.test_wait / mbarrier.try_wait",
            "9.7.15.7.3 wgmma.wait_group",
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
            iteration, or lower N in the last ones. Before the shared memory is used for something else, wait with N = 0. For bulk
            loads: a successful wait on the phase of their mbarrier in every thread that reads, or in one with a barrier after it.
            For bulk stores: cp.async.bulk.wait_group.read in the issuing thread, then a barrier. For wgmma: wait_group in all
            four warps, then hand the stage over.""",
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
        about="""A barrier is used against its own protocol. Named barriers (bar.sync id, count): the counts disagree, or an
            aligned barrier is reached by some lanes of a warp only. mbarrier: used before its init is visible or after
            mbarrier.inval, initialised twice, its eight bytes used as data, more arrivals in a phase than its count, two phases
            completed with no wait between them, a byte count out of range, invalidated while bytes are still to come. The
            hardware does not complain; it hangs or lets threads through too early. The report names the mbarrier by its offset in
            shared memory, with its phase and counts.""",
        sections=("9.7.13.1 bar, barrier", "9.7.13.15.3 Lifecycle of the mbarrier object", "9.7.13.15.4 Phase of the mbarrier object"),
        racy="""
            #include <cuda/ptx>
            namespace ptx = cuda::ptx;
            extern "C" __global__ void k(float* out) {
                __shared__ alignas(8) float scratch[64];
                auto* barrier = reinterpret_cast<uint64_t*>(scratch);
                int t = threadIdx.x;
                if (t == 0) ptx::mbarrier_init(barrier, 64);
                __syncthreads();
                ptx::mbarrier_arrive(barrier);
                while (!ptx::mbarrier_try_wait_parity(barrier, 0)) {}
                __syncthreads();
                scratch[t] = t;                // bytes of a barrier that is still alive
                __syncthreads();
                out[t] = scratch[63 - t];
            }""",
        fixed="""
            #include <cuda/ptx>
            namespace ptx = cuda::ptx;
            extern "C" __global__ void k(float* out) {
                __shared__ alignas(8) float scratch[64];
                auto* barrier = reinterpret_cast<uint64_t*>(scratch);
                int t = threadIdx.x;
                if (t == 0) ptx::mbarrier_init(barrier, 64);
                __syncthreads();
                ptx::mbarrier_arrive(barrier);
                while (!ptx::mbarrier_try_wait_parity(barrier, 0)) {}
                __syncthreads();
                if (t == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];"
                                         :: "r"((unsigned)__cvta_generic_to_shared(barrier)) : "memory");
                __syncthreads();
                scratch[t] = t;
                __syncthreads();
                out[t] = scratch[63 - t];
            }""",
        repair="""Initialise an mbarrier once, in one thread, with the number of arrivals of one phase, and with a barrier between
            the init and the first use; invalidate it before its bytes are used for anything else. Wait once for every phase. Give
            all that meet at a named barrier the same id and the same count: every thread that arrives or waits, in whole warps.
            Keep __syncthreads() out of divergent branches.""",
        launch="--grid 1 --block 64 --arg f32[64]=zeros",
    ),
    "deadlock": Explanation(
        about="""Threads wait for something that nobody can do any more: every thread that could still arrive at the barrier, or
            complete its bytes, has exited or is itself waiting. consan lists who waits where, and what the phase lacks: arrivals
            (fewer threads arrive than mbarrier.init counts, or the two sides of a pipeline disagree on their iterations or
            parities), bytes (expect_tx announced more than the copies bring; a tensor copy counts its whole box), or less than
            nothing (the copies bring more than was announced). A launch that --timeout ended is reported too, and says so: it may
            only have been slow.""",
        sections=("9.7.13.1 bar, barrier", "9.7.13.15.6 Phase Completion of the mbarrier object"),
        racy="""
            #include <cuda/ptx>
            namespace ptx = cuda::ptx;
            extern "C" __global__ void k(const float* in, float* out) {
                __shared__ alignas(128) float tile[64];
                __shared__ uint64_t full;
                int t = threadIdx.x;
                if (t == 0) ptx::mbarrier_init(&full, 1);
                __syncthreads();
                if (t == 0) {
                    ptx::mbarrier_arrive_expect_tx(
                        ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, 512); // too many
                    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, 256, &full);
                }
                while (!ptx::mbarrier_try_wait_parity(&full, 0)) {}
                out[t] = tile[63 - t];
            }""",
        fixed="""
            #include <cuda/ptx>
            namespace ptx = cuda::ptx;
            extern "C" __global__ void k(const float* in, float* out) {
                __shared__ alignas(128) float tile[64];
                __shared__ uint64_t full;
                int t = threadIdx.x;
                if (t == 0) ptx::mbarrier_init(&full, 1);
                __syncthreads();
                if (t == 0) {
                    ptx::mbarrier_arrive_expect_tx(
                        ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, 256);
                    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, 256, &full);
                }
                while (!ptx::mbarrier_try_wait_parity(&full, 0)) {}
                out[t] = tile[63 - t];
            }""",
        repair="""Make the counts right: the arrivals of the init, the bytes of expect_tx, the threads of a named barrier, and the
            number of iterations on the two sides of a pipeline. A producer begins with parity 1 on its empty barriers.""",
        launch="--grid 1 --block 64 --arg f32[64]=random --arg f32[64]=zeros",
    ),
    "missing-proxy-fence": Explanation(
        about="""Shared memory is reached on two ways: the generic proxy (ordinary loads and stores, cp.async) and the async proxy
            (bulk and tensor copies, operands of wgmma). A barrier orders the accesses, but does not make what one way wrote
            visible to the other: that needs fence.proxy.async, executed by the thread that wrote, before the barrier. An error
            under every reading. --policy isa adds three points on which shipped code and a strict reading of the ISA differ, and
            each such finding says so: D1, a generic read before an asynchronous write to the same bytes (warning); D2, a fence
            after the barrier, by the thread that issues the copy instead of those that wrote (note); data of cp.async multiplied
            by wgmma without a fence (warning).""",
        sections=("8.6 Proxies", "9.7.9.25.2 Async Proxy", "9.7.13.4 membar/fence"),
        racy="""
            #include <cuda/ptx>
            namespace ptx = cuda::ptx;
            extern "C" __global__ void k(float* out) {
                __shared__ alignas(128) float tile[64];
                int t = threadIdx.x;
                tile[t] = t;
                __syncthreads();
                if (t == 0) {
                    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile, 256);  // stale data?
                    ptx::cp_async_bulk_commit_group();
                    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
                }
            }""",
        fixed="""
            #include <cuda/ptx>
            namespace ptx = cuda::ptx;
            extern "C" __global__ void k(float* out) {
                __shared__ alignas(128) float tile[64];
                int t = threadIdx.x;
                tile[t] = t;
                ptx::fence_proxy_async(ptx::space_shared);
                __syncthreads();
                if (t == 0) {
                    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile, 256);
                    ptx::cp_async_bulk_commit_group();
                    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
                }
            }""",
        repair="""Put fence.proxy.async into every thread that wrote, between its last write and the barrier. No fence is needed
            in the other direction once the completion has been observed.""",
        launch="--grid 1 --block 64 --arg f32[64]=zeros",
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
        about="""Shared memory is used outside the life of its CTA: an asynchronous copy or matrix product whose completion nobody
            has waited for is still in flight when the CTA ends, or (not checked yet) a peer of the cluster reads it before it has
            started or after it may have exited. The multiprocessor may give the memory to the next CTA at once.""",
        sections=("5.1.7 Shared State Space", "9.7.9.25.1 Completion Mechanisms", "9.7.13.3 barrier.cluster"),
        racy="""
            #include <cuda/ptx>
            namespace ptx = cuda::ptx;
            extern "C" __global__ void k(float* out) {
                __shared__ alignas(128) float tile[64];
                int t = threadIdx.x;
                tile[t] = t;
                ptx::fence_proxy_async(ptx::space_shared);
                __syncthreads();
                if (t == 0) {
                    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile, 256);
                    ptx::cp_async_bulk_commit_group();
                    // ends while the copy still reads the tile
                }
            }""",
        fixed="""
            #include <cuda/ptx>
            namespace ptx = cuda::ptx;
            extern "C" __global__ void k(float* out) {
                __shared__ alignas(128) float tile[64];
                int t = threadIdx.x;
                tile[t] = t;
                ptx::fence_proxy_async(ptx::space_shared);
                __syncthreads();
                if (t == 0) {
                    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile, 256);
                    ptx::cp_async_bulk_commit_group();
                    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
                }
            }""",
        repair="""Wait for all copies before returning: wait_group for stores, the phase of the last load for loads, also for a
            prefetch that the last iteration does not need. In a cluster: one cluster barrier before the first remote access and one
            after the last.""",
        launch="--grid 1 --block 64 --arg f32[64]=zeros",
    ),
    "register-hazard": Explanation(
        about="""wgmma.mma_async reads and writes registers while the warp goes on. Touching its accumulators or its A fragment
            before the wait, or leaving out wgmma.fence before the first one, is undefined. This is found in the text of the kernel,
            for every path, and reported for each kernel that was launched; consan ptx FILE lists it without a launch. Debug builds
            are left out, since every value goes through memory there. ptxas repairs some of it, with a warning (C7517, C7519), and
            makes the kernel slower.""",
        sections=("9.7.15.7.1 wgmma.fence", "9.7.15.7.3 wgmma.wait_group"),
        racy="""
            #define PRODUCT(d, a, b) \\
                asm volatile("{.reg .pred p;\\nsetp.ne.b32 p, 0, 0;\\n" \\
                    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, p, 1, 1, 0, 0;}" \\
                    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b))
            extern "C" __global__ void k(float* out) {
                __shared__ alignas(128) unsigned tile[512];
                for (int i = threadIdx.x; i < 512; i += 128) tile[i] = i;
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncthreads();
                unsigned long long operand = __cvta_generic_to_shared(tile) >> 4 | 8ull << 16 | 16ull << 32;
                float d[4];
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                PRODUCT(d, operand, operand);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                out[threadIdx.x] = d[0];                 // still being written
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            }""",
        fixed="""
            #define PRODUCT(d, a, b) \\
                asm volatile("{.reg .pred p;\\nsetp.ne.b32 p, 0, 0;\\n" \\
                    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, p, 1, 1, 0, 0;}" \\
                    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b))
            extern "C" __global__ void k(float* out) {
                __shared__ alignas(128) unsigned tile[512];
                for (int i = threadIdx.x; i < 512; i += 128) tile[i] = i;
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncthreads();
                unsigned long long operand = __cvta_generic_to_shared(tile) >> 4 | 8ull << 16 | 16ull << 32;
                float d[4];
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                PRODUCT(d, operand, operand);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
                out[threadIdx.x] = d[0];
            }""",
        repair="""wgmma.fence before the first mma_async, commit, and wgmma.wait_group before the registers are used.""",
        launch="--grid 1 --block 128 --arch sm_90a --arg f32[128]=zeros",
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
