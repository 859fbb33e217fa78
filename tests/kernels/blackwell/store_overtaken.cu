// Each warp stores its quarter of the first accumulator, and a product adds to it before all of them have (R-T7): the waits behind it do not help.
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: data-race @store @product severity=error
// allow: uninitialized-read
// result: out = x.astype(np.float32) @ y.astype(np.float32).T + np.arange(64) % 8
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    prepare(a, x, b, y, base, done);
    float v[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    for (u32 column = 0; column < COLUMNS; column += 8) store(own_lanes(base) + column, v);  /*@store*/
    wait_stores();
    fence_before_sync();
#ifndef RACY
    __syncthreads();
#endif
    fence_after_sync();
    if (threadIdx.x == 0) {
        multiply(base, a, b, 1);  /*@product*/
        commit_to(done);
    }
    wait(done, 0);
    fence_after_sync();
    for (u32 column = 0; column < COLUMNS; column += 8) {
        load(v, own_lanes(base) + column);
        wait_loads();
        put(out, column, v);
    }
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
