// A product of 256 x 128 by a pair of CTAs: each brings half of the rows of A and of B; the even one issues, both take their half of C.
#include <cuda_fp16.h>

#define ROWS 128
#define COLUMNS 128
#define STEP 64

__device__ __forceinline__ unsigned shared(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

__device__ __forceinline__ unsigned long long descriptor(const void* tile) {
    return (unsigned long long)((shared(tile) & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61;
}

__device__ __forceinline__ unsigned swizzled(unsigned row, unsigned column) {
    unsigned at = row * 128 + column * 2;
    return at ^ (at >> 7 & 7) << 4;
}

__device__ void load(unsigned char* to, const __half* from, int rows, int k, int at) {
    for (int i = threadIdx.x; i < rows * 8; i += blockDim.x) {
        int row = i / 8, column = i % 8 * 8;
        *reinterpret_cast<uint4*>(to + swizzled(row, column)) = *reinterpret_cast<const uint4*>(from + row * k + at + column);
    }
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128) pair(const __half* a, const __half* b, float* c, int k) {
    __shared__ __align__(1024) unsigned char tile_a[ROWS * 128], tile_b[COLUMNS / 2 * 128];
    __shared__ unsigned long long done;
    __shared__ unsigned place;
    unsigned rank, warp = threadIdx.x / 32;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&done)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_sync();  // the peer runs, and its barrier is ready
    if (warp == 0) {
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 128;" ::"r"(shared(&place)) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
    }
    __syncthreads();
    unsigned tensor = *const_cast<volatile unsigned*>(&place), phase = 0;
    const unsigned idesc = 1u << 4 | (COLUMNS >> 3) << 17 | (2 * ROWS >> 4) << 24;
    for (int at = 0; at < k; at += STEP) {
        load(tile_a, a + rank * ROWS * k, ROWS, k, at);
        load(tile_b, b + rank * (COLUMNS / 2) * k, COLUMNS / 2, k, at);
        asm volatile("fence.proxy.async.shared::cluster;" ::: "memory");
        cluster_sync();
        if (rank == 0 && threadIdx.x == 0) {
            for (unsigned step = 0; step < STEP / 16; step++)
                asm volatile(
                    "{ .reg .pred p; setp.ne.b32 p, %4, 0;\n"
                    "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(tensor),
                    "l"(descriptor(tile_a) + 2 * step), "l"(descriptor(tile_b) + 2 * step), "r"(idesc), "r"(at + step)
                    : "memory");
            asm volatile(
                "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(shared(&done)),
                "h"((unsigned short)3)
                : "memory");
        }
        asm volatile(
            "{ .reg .pred done;\n"
            "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
            "@!done bra again; }" ::"r"(shared(&done)),
            "r"(phase)
            : "memory");
        phase ^= 1;
    }
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    for (unsigned part = 0; part < COLUMNS; part += 4) {
        unsigned x[4];
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(tensor + part));
        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
        for (int i = 0; i < 4; i++) c[(rank * ROWS + threadIdx.x) * COLUMNS + part + i] = __uint_as_float(x[i]);
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    cluster_sync();  // nobody reads any more
    if (warp == 0) asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 128;" ::"r"(tensor));
}
