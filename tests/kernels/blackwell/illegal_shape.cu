// The instruction descriptor has a number of rows that the tables do not have (R-T15).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: tcgen05-misuse @product severity=error
// allow: tcgen05-misuse @alloc severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    fill(a, x, 128), fill(b, y, 64);
    if (threadIdx.x == 0) init(done, 1);
    if (threadIdx.x < 32) alloc(base, COLUMNS);  /*@alloc*/
    fence_async_shared();
    __syncthreads();
#ifdef RACY
    constexpr u32 ROWS = 96;
#else
    constexpr u32 ROWS = 128;
#endif
    if (threadIdx.x == 0) {
        multiply(base, a, b, 0, (SHAPE & ~(31u << 24)) | ROWS / 16 << 24);  /*@product*/
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
