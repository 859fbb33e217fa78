// A sparse product reads its metadata before the stores of it are complete: the column that the sparsity selector names (R-T4).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[32,32]=random
// arg: out f32[128,8]=zeros
// expect: missing-wait RAW @store @product severity=error
// result: out = (x.astype(np.float64).reshape(128, 8, 2)[:, None] * y.astype(np.float64)[:8].reshape(8, 8, 4)[None, :, :, :2]).sum((2, 3))
#include "../blackwell.cuh"
constexpr u32 SECOND = 0x08080015, METADATA = 32, FIRST_TWO = 0x44444444, LAST_TWO = 0xEEEEEEEE;  // N = 32, sparse, selector 1

INLINE void keep(u32 to, u32 word) { asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(to), "r"(word) : "memory"); }
// Element (row, k) of 32 x 32.
INLINE u32 wide_element(u32 row, u32 k) { return row % 8 * 8 + row / 8 * 256 + k / 8 * 64 + k % 8; }

extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[32 * 32];
    __shared__ u32 base;
    __shared__ u64 done;
    fill(a, x, 128);
    for (u32 i = threadIdx.x; i < 32 * 32; i += blockDim.x) b[wide_element(i / 32, i % 32)] = y[i];
    if (threadIdx.x == 0) init(done, 1);
    if (threadIdx.x < 32) alloc(base, COLUMNS);
    fence_async_shared();
    __syncthreads();
    keep(own_lanes(base) + METADATA, LAST_TWO);
    wait_stores();
    keep(own_lanes(base) + METADATA + 1, FIRST_TWO);  /*@store*/
#ifndef RACY
    wait_stores();
#endif
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
    if (threadIdx.x == 0) {
        u64 right = descriptor(b) + (0x10ull << 32);  // 512 bytes between groups of 8 rows
        asm volatile("tcgen05.mma.sp.cta_group::1.kind::f16 [%0], %1, %2, [%3], %4, 0;"  /*@product*/
                     ::"r"(base), "l"(descriptor(a)), "l"(right), "r"(base + METADATA), "r"(SECOND) : "memory");
        commit_to(done);
    }
    wait(done, 0);
    fence_after_sync();
    float v[8];
    load(v, own_lanes(base));
    wait_loads();
    wait_stores();
    for (u32 i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = v[i];
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
