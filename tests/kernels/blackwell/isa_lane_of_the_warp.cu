// All warps give lane 0 of tensor memory, which lies in the quarter of the first one (T4).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// policy: isa
// expect: tcgen05-misuse @load severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    prepare(a, x, b, y, base, done);
    if (threadIdx.x == 0) {
        multiply(base, a, b, 0);
        commit_to(done);
    }
#ifdef RACY
    u32 from = base;
#else
    u32 from = own_lanes(base);
#endif
    wait(done, 0);
    fence_after_sync();
    float v[8];
    for (u32 column = 0; column < COLUMNS; column += 8) {
        load(v, from + column);  /*@load*/
        wait_loads();
        put(out, column, v);
    }
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
