// An operand is stored again behind the wait for the commit: no fence takes the bytes from the async to the generic proxy (T13).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// policy: isa
// expect: missing-proxy-fence WAR @first @fill severity=warning
// result: out = 2 * (x.astype(np.float32) @ y.astype(np.float32).T)
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    prepare(a, x, b, y, base, done);
    if (threadIdx.x == 0) {
        multiply(base, a, b, 0);  /*@first*/
        commit_to(done);
    }
    wait(done, 0);
#ifndef RACY
    fence_async_shared();
#endif
    for (u32 i = threadIdx.x; i < 64 * 16; i += blockDim.x) b[element(i / 16, i % 16)] = y[i];  /*@fill*/
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x == 0) {
        multiply(base, a, b, 1);
        commit_to(done);
    }
    wait(done, 1);
    fence_after_sync();
    float v[8];
    for (u32 column = 0; column < COLUMNS; column += 8) {
        load(v, own_lanes(base) + column);
        wait_loads();
        put(out, column, v);
    }
    fence_before_sync();
    __syncthreads();
    fence_after_sync();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
