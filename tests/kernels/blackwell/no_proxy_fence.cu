// Operands are stored through the generic proxy, and no proxy fence follows (R-T10).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: missing-proxy-fence RAW @fill @multiply severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    fill(a, x, 128), fill(b, y, 64);  /*@fill*/
    if (threadIdx.x == 0) init(done, 1);
    if (threadIdx.x < 32) alloc(base, COLUMNS);
#ifndef RACY
    fence_async_shared();
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        multiply(base, a, b, 0);  /*@multiply*/
        commit_to(done);
    }
    wait(done, 0);
    float v[8];
    for (u32 column = 0; column < COLUMNS; column += 8) {
        load(v, own_lanes(base) + column);
        wait_loads();
        put(out, column, v);
    }
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
