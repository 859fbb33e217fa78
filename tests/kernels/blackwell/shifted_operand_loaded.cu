// A product with .ashift moves the rows of A behind it: loads of A must wait for it (R-T1).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f32[128,8]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: missing-wait RAW @multiply @load severity=error
// result: out = np.pad(np.where(np.arange(128)[:, None] % 32 == 31, x, np.roll(x, -1, 0)), ((0, 0), (0, 56)))
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const float* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base, rows;
    __shared__ u64 done;
    for (u32 i = threadIdx.x; i < 128 * 16; i += blockDim.x) a[i] = f16(0);
    fill(b, y, 64);
    if (threadIdx.x == 0) init(done, 1);
    if (threadIdx.x < 32) alloc(base, COLUMNS), alloc(rows, 32);
    fence_async_shared();
    __syncthreads();
    float v[8];
    for (u32 i = 0; i < 8; ++i) v[i] = x[threadIdx.x * 8 + i];
    store(own_lanes(rows), v);
    wait_stores();
    fence_before_sync();
    __syncthreads();
    if (threadIdx.x == 0) {
        fence_after_sync();
        asm volatile("{ .reg .pred more; setp.ne.u32 more, 1, 1; tcgen05.mma.cta_group::1.kind::f16.ashift [%0], [%1], %2, %3, more; }"  /*@multiply*/
                     ::"r"(base), "r"(rows), "l"(descriptor(b)), "r"(SHAPE) : "memory");
        commit_to(done);
    }
#ifndef RACY
    wait(done, 0);
#endif
    load(v, own_lanes(rows));  /*@load*/
    wait_loads();
    put(out, 0, v);
#ifdef RACY
    wait(done, 0);
#endif
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS), dealloc(rows, 32);
}
