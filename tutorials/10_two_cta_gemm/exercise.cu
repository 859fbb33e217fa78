// c = a * b^T: 256 x 64, by a pair of CTAs. Each CTA brings 128 rows of a and 32 of b, and takes its 128 rows of c from its own
// tensor memory. The leader (rank 0) issues the products for both: one tcgen05.mma reads the shared memory of both CTAs.
#include <cuda_fp16.h>

#define ROWS 128    // of a, in each CTA
#define COLUMNS 64  // of c; each CTA brings half of them as rows of b
#define STEP 64     // of k, at a time

typedef unsigned long long Barrier;

__device__ unsigned address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void init(Barrier* bar, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(bar)), "r"(count) : "memory");
}

// One arrival on the barrier of the leader, wherever the thread runs.
__device__ void tell_the_leader(Barrier* bar) {
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, 0;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" ::"r"(address(bar)) : "memory");
}

__device__ void wait(Barrier* bar, unsigned parity) {
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra L; }"
                 ::"r"(address(bar)), "r"(parity) : "memory");
}

__device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Rows of 128 bytes, swizzled as the tensor core expects them.
__device__ unsigned long long descriptor(const void* tile) {
    return (unsigned long long)((address(tile) & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61;
}

__device__ void load(unsigned char* tile, const __half* from, int rows, int k, int at) {
    for (int i = threadIdx.x; i < rows * 8; i += blockDim.x) {
        int row = i / 8, byte = row * 128 + i % 8 * 16;
        *reinterpret_cast<uint4*>(tile + (byte ^ (byte >> 7 & 7) << 4)) = *reinterpret_cast<const uint4*>(from + row * k + at + i % 8 * 8);
    }
}

__device__ void multiply(unsigned d, const void* a, const void* b, bool first) {
    const unsigned shape = 1u << 4 | (COLUMNS >> 3) << 17 | (2 * ROWS >> 4) << 24;  // f16, sums in f32, N, M
    for (unsigned step = 0; step < STEP / 16; step++)
        asm volatile(
            "{ .reg .pred add; setp.ne.b32 add, %4, 0;\n"
            "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, add; }" ::"r"(d), "l"(descriptor(a) + 2 * step),
            "l"(descriptor(b) + 2 * step), "r"(shape), "r"(first ? step : 1u) : "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128) gemm(const __half* a, const __half* b, float* c, int k) {
    __shared__ __align__(1024) unsigned char tile_a[ROWS * 128], tile_b[COLUMNS / 2 * 128];
    __shared__ Barrier ready, done;
    __shared__ unsigned place;
    unsigned rank, t = threadIdx.x;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (t == 0) {
        init(&ready, 2);  // thread 0 of each CTA
        init(&done, 1);   // the commit
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_sync();  // the other CTA runs, and its barriers are there
    if (t < 32) {
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(address(&place)) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
    }
    __syncthreads();
    unsigned d = place;

    for (int at = 0, phase = 0; at < k; at += STEP, phase ^= 1) {
        load(tile_a, a + rank * ROWS * k, ROWS, k, at);
        load(tile_b, b + rank * (COLUMNS / 2) * k, COLUMNS / 2, k, at);
        asm volatile("fence.proxy.async.shared::cluster;" ::: "memory");  // the tensor core reads through the async proxy
        if (t == 0) tell_the_leader(&ready);
        __syncthreads();
        if (rank == 0 && t == 0) {
            wait(&ready, phase);
            multiply(d, tile_a, tile_b, at == 0);
            asm volatile(
                "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(address(&done)),
                "h"((unsigned short)3) : "memory");
        }
        wait(&done, phase);  // in both CTAs: the tiles may be overwritten, the sums are there
    }

    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    for (unsigned column = 0; column < COLUMNS; column += 4) {
        float x[4];
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "r"(d + (t / 32 * 32 << 16) + column));
        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
        for (int i = 0; i < 4; i++) c[(rank * ROWS + t) * COLUMNS + column + i] = x[i];
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    cluster_sync();  // nobody reads tensor memory any more
    if (t < 32) asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 64;" ::"r"(d));
}
