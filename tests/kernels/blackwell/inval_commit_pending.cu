// The mbarrier of a commit is invalidated by a thread that knows nothing of the product: the commit may still arrive (R-M12). A later commit of
// the same thread tells as much, so the first need not be waited for (T16).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: barrier-misuse @commit @inval severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16];
    __shared__ alignas(128) f16 b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done, empty;
    if (threadIdx.x == 0) init(empty, 1);
    prepare(a, x, b, y, base, done);
    u32 d = base;
    if (threadIdx.x == 0) {
        multiply(d, a, b, 0);
        commit_to(empty);  /*@commit*/
        commit_to(done);
    }
#ifndef RACY
    wait(done, 0);
#endif
    if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared(&empty)) : "memory");  /*@inval*/
#ifdef RACY
    wait(done, 0);
#endif
    for (u32 column = 0; column < COLUMNS; column += 8) {
        float v[8];
        load(v, own_lanes(d) + column);
        wait_loads();
        put(out, column, v);
    }
    __syncthreads();
    if (threadIdx.x < 32) dealloc(d, COLUMNS);
}
