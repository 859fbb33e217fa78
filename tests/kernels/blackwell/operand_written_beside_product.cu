// Other warps write an operand. In the racy twin nothing orders them and the issue of the product: a race, and no missing wait (SEMANTICS 4).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: data-race RAW @multiply @clear severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    prepare(a, x, b, y, base, done);
    if (threadIdx.x == 0) {
        multiply(base, a, b, 0);  /*@multiply*/
        commit_to(done);
    }
#ifndef RACY
    if (threadIdx.x < 32) wait(done, 0);
    __syncthreads();
#endif
    if (threadIdx.x >= 32) b[threadIdx.x] = 0;  /*@clear*/
    if (threadIdx.x < 32) wait(done, 0);
    __syncthreads();
    float v[8];
    for (u32 column = 0; column < COLUMNS; column += 8) {
        load(v, own_lanes(base) + column);
        wait_loads();
        put(out, column, v);
    }
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
