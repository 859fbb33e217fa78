// A thread invalidates the mbarrier of a commit that the other warps wait for, too. They are behind their waits when they have come to a
// barrier, be it a relaxed one, as Triton writes it (R-M12).
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: barrier-misuse @inval severity=error
// allow: deadlock
// allow: barrier-misuse
// allow: missing-wait
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell.cuh"
extern "C" __global__ void __cluster_dims__(1, 1, 1) kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16];
    __shared__ alignas(128) f16 b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    prepare(a, x, b, y, base, done);
    u32 d = base;
    if (threadIdx.x == 0) {
        multiply(d, a, b, 0);
        commit_to(done);
    }
    wait(done, 0);
#ifndef RACY
    asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
#endif
    if (threadIdx.x == 96) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared(&done)) : "memory");  /*@inval*/
    for (u32 column = 0; column < COLUMNS; column += 8) {
        float v[8];
        load(v, own_lanes(d) + column);
        wait_loads();
        put(out, column, v);
    }
    __syncthreads();
    if (threadIdx.x < 32) dealloc(d, COLUMNS);
}
