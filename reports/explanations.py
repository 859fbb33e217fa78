"""The long text of each kind: what it means, what the PTX ISA says, a racy and a fixed example, how to fix it.

`consan explain KIND` prints these as pages (pages.py). The examples are whole kernels. Tests run both: the first must give the
finding, the second none. A kind with `reported=False` must give none at all. Section numbers are those of
PTX ISA 9.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Explanation:
    """One page. `launch` holds the `consan check` options of the examples."""

    about: str
    isa: str
    sections: tuple[str, ...]
    racy: str
    fixed: str
    repair: str
    launch: str
    reported: bool = True


EXPLANATIONS: Final[dict[str, Explanation]] = {
    "data-race": Explanation(
        about="""Two threads access the same bytes, at least one of them writes, and nothing orders the two accesses. The
            hardware decides which comes first: the result can be right for years and wrong on the next chip. RAW: a read that may run
            before the write it needs. WAR: a write that may destroy a value before it has been read, most often because a
            loop refills a tile that other warps still use, with its own stores or with a bulk copy issued before the
            consumers have released the stage (the "empty" mbarrier of a pipeline). WAW: two unordered writes. Between lanes
            of one warp the severity is warning: current hardware mostly runs them together, but nothing guarantees it. Stores
            of the same value are a warning. If one instruction makes them, they are a note, which --notes prints.""",
        isa="""Two accesses of the same bytes conflict if one of them writes, and conflicting accesses that causality order does not relate
            are a data race unless both are strong and at scopes that include each other. Only synchronisation creates
            causality order between threads: a barrier that both pass, or a release that an acquire observes. Being in one
            warp is no synchronisation: the smallest scope is the CTA, and the order in which lanes run is not defined.""",
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
        about="""An asynchronous operation (cp.async, a bulk or tensor copy, the operands of wgmma) is in flight, and a thread
            accesses its bytes before it has observed the completion. A barrier alone does not help: it
            orders what threads did, not what is still in flight. Common mistakes: no wait at all; a wait_group N that leaves
            the newest N groups in flight; a wait before the commit, which covers nothing; a wait by a thread that did not
            issue the copy (groups belong to the thread); the wrong parity of an mbarrier; a wait by one thread with no
            barrier for the others. A bulk store or wgmma reads its bytes until it completes: overwriting them earlier is the
            same mistake. If only other lanes of the warp have waited, __syncwarp() is missing and the severity is warning.""",
        isa="""An asynchronous operation is not part of the program order of the thread that issues it: it is ordered after
            earlier instructions, but not before later ones. Reading the destination, or changing the source, before it is
            complete is undefined behaviour. A thread observes completion by a wait: for the group that it committed itself,
            or for the phase of the mbarrier that tracks the operation. A wait for groups orders nothing else, and only for
            its own thread.""",
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
            barrier for the other threads, then the access. Each thread counts its own groups, including empty ones: commit in
            every iteration, or lower N in the last ones. Before the shared memory is used for something else, wait with N = 0. For bulk
            loads: a successful wait on the phase of their mbarrier in every thread that reads, or in one with a barrier after it.
            For bulk stores: cp.async.bulk.wait_group.read in the issuing thread, then a barrier. For wgmma: wait_group in all
            four warps, then hand the stage over.""",
        launch="--grid 1 --block 64 --arg f32[256]=random --arg f32[256]=zeros",
    ),
    "uninitialized-read": Explanation(
        about="""Shared memory is read before anything in this CTA has written those bytes. The value is whatever the previous
            CTA on that multiprocessor left: often zero or yesterday's right answer, which is why such bugs hide. Typical: the
            halo of a tile, the tail of a partial tile, an accumulator that one branch forgets. If an unordered write follows,
            consan reports the pair as a data race. Bytes that are loaded but provably not used are a note.""",
        isa="""Memory holds unknown values before the first thread starts, unless its variable has an initialiser. Only
            variables in constant and global memory can have one.""",
        sections=("8.2.6 Initialization", "5.4.4 Initializers"),
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
        isa="""A CTA owns the shared memory that its kernel declares and its launch asks for. Generic addresses reach it through a
            window of exactly that size. Addresses beyond it belong to other memory, or to none.""",
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
        about="""A barrier is used against its protocol. Named barriers (bar.sync id, count): the counts disagree. A warp-
            synchronous instruction (__syncthreads() and every other .aligned one, or a .sync with a mask of lanes) is reached by
            some of its lanes only: the report names it, the lanes that came, and where the others are. mbarrier: used before its
            init is visible or after mbarrier.inval, initialised twice, its eight bytes used as data, more arrivals in a phase
            than its count, two phases completed with no wait between them, a byte count out of range, invalidated while bytes are
            still to come. The hardware does not complain; it hangs or lets threads through too early. The report names the
            mbarrier by its offset in shared memory, with its phase and counts.""",
        isa="""A named barrier releases its threads when the count has been reached, so all participants must name the same
            count. All threads of a warp that have not exited must execute an aligned instruction together; a .sync
            instruction needs all lanes that its mask names; matrix instructions need the whole warp. On memory without an
            mbarrier only init is defined. On an initialised mbarrier only mbarrier operations other than init are defined. In
            every phase a wait must succeed before a thread arrives for the next one.""",
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
            Move __syncthreads() out of the branch, so that all threads of the CTA pass it. A __syncwarp(mask) names just the
            lanes that execute it.""",
        launch="--grid 1 --block 64 --arg f32[64]=zeros",
    ),
    "deadlock": Explanation(
        about="""Threads wait for an event that can no longer happen: every thread that could arrive at the barrier, or
            complete its bytes, has exited or is itself waiting. consan lists who waits where, and what the phase lacks: arrivals
            (fewer threads arrive than mbarrier.init counts, or the two sides of a pipeline disagree on their iterations or
            parities), bytes (expect_tx announced more than the copies bring; a tensor copy counts its whole box), or a
            negative count (the copies bring more than was announced). The virtual machine also proves that loops never end:
            threads poll memory that no remaining thread writes, try to take a lock that no thread releases, or repeat a loop
            without end. The finding names the polled memory and its value, and needs no time limit. A launch that is stopped
            without such a proof is not a deadlock. It makes the run incomplete, and the report says where its threads were.
            This happens with --timeout, with Ctrl-C, and, on the virtual machine, after the threads have polled for a minute
            while no memory changed (loops that count or read a clock; --timeout sets another limit). It also happens to a
            loop that polls global memory which somebody else could still write: CTAs that have not started or, in a program,
            the host or another stream. On a GPU, only --timeout ends loops that poll plain memory; everywhere, only
            --timeout ends a loop that counts or stores in memory, because it may end by itself.""",
        isa="""A barrier waits for its number of threads, even if none are left to arrive. A phase of an mbarrier completes
            when no arrival is pending and no byte is outstanding. Until then a wait for it returns false.""",
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
        about="""Shared memory is accessed through two proxies: the generic proxy (ordinary loads and stores, cp.async) and
            the async proxy (bulk and tensor copies, operands of wgmma). A barrier orders the accesses, but does not make data
            written through one proxy visible to the other. That needs fence.proxy.async, executed by the writing thread,
            before the barrier. This is an error under every reading of the ISA.
            --policy isa adds three points on which shipped code and a strict reading of the ISA differ, and
            each such finding says so: D1, a generic read before an asynchronous write to the same bytes (warning); D2, a fence
            after the barrier, by the thread that issues the copy instead of those that wrote (note); data of cp.async multiplied
            by wgmma without a fence (warning).""",
        isa="""A proxy is a path to memory. Only a proxy fence orders accesses through different proxies, whatever orders the
            threads. Bulk copies and wgmma use the async proxy for shared memory. The completion of a bulk copy includes the
            fence towards ordinary accesses; in the other direction the program must execute it.""",
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
        about="""The synchronisation exists, but its scope is too narrow: an arrive or a wait with the default .cta scope does not
            order threads of two CTAs of a cluster, and one with .cluster does not reach other clusters.""",
        isa="""Every release, acquire and fence has a scope: the threads with which it can synchronise. A release and an
            acquire synchronise only if each scope includes the other thread. The default of mbarrier operations is .cta.""",
        sections=("8.5 Scope", "9.7.13.15.13 mbarrier.arrive", "9.7.13.15.16 mbarrier.test_wait / mbarrier.try_wait"),
        racy="""
            #include <cooperative_groups.h>
            #include <cuda/ptx>
            namespace ptx = cuda::ptx;
            extern "C" __global__ void __cluster_dims__(2) k(float* out) {
                __shared__ float tile[64];
                __shared__ uint64_t full;
                auto cluster = cooperative_groups::this_cluster();
                int t = threadIdx.x;
                if (t == 0) ptx::mbarrier_init(&full, 64);
                cluster.sync();
                if (cluster.block_rank() == 0) {
                    *cluster.map_shared_rank(&tile[t], 1) = t;
                    unsigned remote = __cvta_generic_to_shared(cluster.map_shared_rank(&full, 1));
                    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];"     // of .cta scope
                                 :: "r"(remote) : "memory");
                } else {
                    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {}
                    out[t] = tile[63 - t];
                }
                cluster.sync();
            }""",
        fixed="""
            #include <cooperative_groups.h>
            #include <cuda/ptx>
            namespace ptx = cuda::ptx;
            extern "C" __global__ void __cluster_dims__(2) k(float* out) {
                __shared__ float tile[64];
                __shared__ uint64_t full;
                auto cluster = cooperative_groups::this_cluster();
                int t = threadIdx.x;
                if (t == 0) ptx::mbarrier_init(&full, 64);
                cluster.sync();
                if (cluster.block_rank() == 0) {
                    *cluster.map_shared_rank(&tile[t], 1) = t;
                    unsigned remote = __cvta_generic_to_shared(cluster.map_shared_rank(&full, 1));
                    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                                 :: "r"(remote) : "memory");
                } else {
                    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &full, 0)) {}
                    out[t] = tile[63 - t];
                }
                cluster.sync();
            }""",
        repair="""Widen the scope on both sides of the edge: the release and the acquire must each include the other thread.""",
        launch="--grid 2 --block 64 --cluster 2 --arch sm_90a --arg f32[64]=zeros",
    ),
    "lifetime": Explanation(
        about="""Shared memory is used outside the lifetime of its CTA: an asynchronous copy or matrix product, for which no
            thread has waited, is still in flight when the CTA ends, or (not checked yet) a peer of the cluster reads it before it has
            started or after it may have exited. The multiprocessor may give the memory to the next CTA at once.""",
        isa="""An executing CTA owns its shared memory; the memory does not exist before it starts or after it ends. The exit
            of a thread does not complete what it has issued; only a wait does. In a cluster, only a cluster barrier
            guarantees that all CTAs have started, or that all are done.""",
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
        about="""wgmma.mma_async reads and writes registers while the warp continues. Accessing its accumulators or its A
            fragment before the wait, or omitting wgmma.fence before the first one, is undefined. consan finds this in the
            kernel's text, on every path, and reports it for each launched kernel; consan ptx FILE lists it without a launch.
            Debug builds are not checked, because they pass every value through memory. ptxas repairs some cases with a
            warning (C7517, C7519), and the kernel gets slower. It serialises the pipeline (C7514) if an accumulator is read
            after a wait_group that leaves its group pending.
            Accumulators or A fragments that plain instructions write between wgmma.fence and wgmma.mma_async are a
            warning: compilers of CUDA C++ move such writes below the fence, and ptxas orders them before the product.""",
        isa="""Until a wgmma.wait_group that covers the product, any access to its accumulators or to the registers that hold A is
            undefined behaviour. wgmma.fence must come before the first wgmma.mma_async, and again after these registers were
            modified. Products that only accumulate into the same registers need none between them.""",
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
        isa="""The model is the same as for shared memory, with the CTA left behind: barriers of a CTA order its own threads only. What
            orders threads of different CTAs is a release and an acquire at .gpu scope, or the end of the kernel.""",
        sections=("8.7.1 Conflict and Data-races", "8.8 Release and Acquire Patterns"),
        racy="""
            extern "C" __global__ void k(float* partial, unsigned* count, float* out) {
                if (threadIdx.x == 0) {
                    partial[blockIdx.x] = blockIdx.x + 1;
                    if (atomicAdd(count, 1) == gridDim.x - 1)
                        out[0] = partial[0] + partial[1];   // the other CTA's may not be visible
                }
            }""",
        fixed="""
            extern "C" __global__ void k(float* partial, unsigned* count, float* out) {
                if (threadIdx.x == 0) {
                    partial[blockIdx.x] = blockIdx.x + 1;
                    __threadfence();
                    if (atomicAdd(count, 1) == gridDim.x - 1) {
                        __threadfence();
                        out[0] = partial[0] + partial[1];
                    }
                }
            }""",
        repair="""__threadfence() on both sides of the flag or counter, or cuda::atomic_ref with release and acquire.""",
        launch="--grid 2 --block 32 --arg f32[2]=zeros --arg u32[1]=zeros --arg f32[1]=zeros",
        reported=False,
    ),
}
