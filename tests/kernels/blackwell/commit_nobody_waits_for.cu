// Two products for two accumulators, whose thread then commits to the mbarrier of both. No warp waits for it: another one knows the stages (R-T1).
// launch: grid=1 block=192 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: missing-wait RAW @multiply @load severity=error
// allow: missing-wait|data-race severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 empty[2], full, done;
    if (threadIdx.x == 0) init(empty[0], 1), init(empty[1], 1), init(full, 1);
    fill(a, x, 128), fill(b, y, 64);
    if (threadIdx.x == 0) init(done, 1);
    if (threadIdx.x < 32) alloc(base, 128);
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x == 128) {
        for (u32 step = 0; step < 2; ++step) {
            multiply(base + step * COLUMNS, a, b, 0);  /*@multiply*/
            commit_to(empty[step]);
        }
        commit_to(full);
    }
    if (threadIdx.x == 160) wait(empty[0], 0), wait(empty[1], 0), arrive(done);
    if (threadIdx.x < 128) {
#ifndef RACY
        wait(full, 0);
#endif
        float v[8];
        for (u32 column = 0; column < COLUMNS; column += 8) {
            load(v, own_lanes(base) + column);  /*@load*/
            wait_loads();
            put(out, column, v);
        }
    }
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, 128);
}
