// A persistent product with roles: warps 0 to 3 take accumulators out of tensor memory, warp 4 fills a ring of stages, warp 5 multiplies.
// Two accumulators take turns. C [m, n] = A [m, k] B [n, k]^T; tiles of 128 x 64, steps of 64 of K, 128-byte swizzle.
#include <cuda_fp16.h>

#define STAGES 3
#define TILE_M 128
#define TILE_N 64
#define STEP 64

__device__ __forceinline__ unsigned shared(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }

__device__ __forceinline__ void init(unsigned long long* barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(barrier)), "r"(count) : "memory");
}

__device__ __forceinline__ void arrive(unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared(barrier)) : "memory");
}

__device__ __forceinline__ void wait(unsigned long long* barrier, unsigned phase) {
    asm volatile(
        "{ .reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again; }" ::"r"(shared(barrier)),
        "r"(phase)
        : "memory");
}

__device__ __forceinline__ bool elected() {
    unsigned chosen;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(chosen));
    return chosen;
}

__device__ __forceinline__ unsigned long long descriptor(const void* tile) {
    return (unsigned long long)((shared(tile) & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61;
}

__device__ __forceinline__ void multiply(unsigned accumulator, unsigned long long a, unsigned long long b, unsigned idesc, bool keep) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(accumulator),
        "l"(a), "l"(b), "r"(idesc), "r"((unsigned)keep)
        : "memory");
}

__device__ __forceinline__ void commit(unsigned long long* barrier) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared(barrier)) : "memory");
}

// Element (row, column) of a tile with rows of 128 bytes.
__device__ __forceinline__ unsigned swizzled(unsigned row, unsigned column) {
    unsigned at = row * 128 + column * 2;
    return at ^ (at >> 7 & 7) << 4;
}

struct __align__(1024) Ring {
    unsigned char a[STAGES][TILE_M * 128];
    unsigned char b[STAGES][TILE_N * 128];
};

__device__ void fill(Ring* ring, unsigned long long* full, unsigned long long* empty, const __half* a, const __half* b, int n, int k) {
    unsigned lane = threadIdx.x % 32, round = 0;
    for (int tile = blockIdx.x; tile < 2 * (n / TILE_N); tile += gridDim.x) {
        for (int at = 0; at < k; at += STEP, round++) {
            unsigned stage = round % STAGES;
            wait(&empty[stage], (round / STAGES + 1) & 1);
            for (unsigned i = lane; i < (TILE_M + TILE_N) * 8; i += 32) {
                unsigned row = i / 8, column = i % 8 * 8;
                bool of_b = row >= TILE_M;
                if (of_b) row -= TILE_M;
                const __half* from = of_b ? b + (tile / 2 * TILE_N + row) * k : a + (tile % 2 * TILE_M + row) * k;
                unsigned char* to = of_b ? ring->b[stage] : ring->a[stage];
                *reinterpret_cast<uint4*>(to + swizzled(row, column)) = *reinterpret_cast<const uint4*>(from + at + column);
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            arrive(&full[stage]);
        }
    }
}

__device__ void issue(Ring* ring, unsigned long long* full, unsigned long long* empty, unsigned long long* ready, unsigned long long* free_,
                      unsigned tensor, int n, int k) {
    const unsigned idesc = 1u << 4 | (TILE_N >> 3) << 17 | (TILE_M >> 4) << 24;
    unsigned round = 0, turn = 0;
    for (int tile = blockIdx.x; tile < 2 * (n / TILE_N); tile += gridDim.x, turn++) {
        unsigned half = turn % 2;
        wait(&free_[half], (turn / 2 + 1) & 1);
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        for (int at = 0; at < k; at += STEP, round++) {
            unsigned stage = round % STAGES;
            wait(&full[stage], round / STAGES & 1);
            asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
            for (unsigned step = 0; step < STEP / 16; step++)
                multiply(tensor + half * TILE_N, descriptor(ring->a[stage]) + 2 * step, descriptor(ring->b[stage]) + 2 * step, idesc, at + step);
            commit(&empty[stage]);
        }
        commit(&ready[half]);
    }
}

__device__ void take(unsigned long long* ready, unsigned long long* free_, unsigned tensor, float* c, int n) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, turn = 0;
    for (int tile = blockIdx.x; tile < 2 * (n / TILE_N); tile += gridDim.x, turn++) {
        unsigned half = turn % 2;
        wait(&ready[half], turn / 2 & 1);
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        for (unsigned part = 0; part < TILE_N; part += 16) {
            unsigned x[16];
            unsigned from = tensor + half * TILE_N + part + (warp * 32 << 16);
            asm volatile(
                "tcgen05.ld.sync.aligned.16x256b.x2.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%16];\n"
                "tcgen05.ld.sync.aligned.16x256b.x2.b32 {%8, %9, %10, %11, %12, %13, %14, %15}, [%17];\n"
                : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]), "=r"(x[4]), "=r"(x[5]), "=r"(x[6]), "=r"(x[7]), "=r"(x[8]), "=r"(x[9]),
                  "=r"(x[10]), "=r"(x[11]), "=r"(x[12]), "=r"(x[13]), "=r"(x[14]), "=r"(x[15])
                : "r"(from), "r"(from + (16 << 16)));
            asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
            for (unsigned i = 0; i < 16; i++) {
                unsigned row = tile % 2 * TILE_M + warp * 32 + i / 8 * 16 + lane / 4 + 8 * (i / 2 % 2);
                unsigned column = tile / 2 * TILE_N + part + i / 4 % 2 * 8 + lane % 4 * 2 + i % 2;
                c[row * n + column] = __uint_as_float(x[i]);
            }
        }
        asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
        arrive(&free_[half]);
    }
}

extern "C" __global__ void __launch_bounds__(192) persistent(const __half* a, const __half* b, float* c, int n, int k) {
    extern __shared__ unsigned char memory[];
    __shared__ unsigned long long full[STAGES], empty[STAGES], ready[2], free_[2];
    __shared__ unsigned place;
    Ring* ring = reinterpret_cast<Ring*>((reinterpret_cast<unsigned long long>(memory) + 1023) & ~1023ull);
    unsigned warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) init(&full[i], 32), init(&empty[i], 1);
        for (int i = 0; i < 2; i++) init(&ready[i], 1), init(&free_[i], 128);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (warp == 0) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;" ::"r"(shared(&place)) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    __syncthreads();
    unsigned tensor = *const_cast<volatile unsigned*>(&place);
    if (warp == 4) {
        fill(ring, full, empty, a, b, n, k);
    } else if (warp == 5) {
        if (elected()) issue(ring, full, empty, ready, free_, tensor, n, k);
    } else {
        take(ready, free_, tensor, c, n);
    }
    __syncthreads();
    if (warp == 0) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 128;" ::"r"(tensor));
}
