// Another thread goes on with the same accumulator, told by a relaxed arrival that the first product was issued: without the tcgen05 fences that
// orders nothing (R-T9). Completion is not needed.
// launch: grid=1 block=128 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: missing-tcgen05-fence @first @second severity=error
// result: out = 2 * (x.astype(np.float32) @ y.astype(np.float32).T)
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16];
    __shared__ alignas(128) f16 b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done, first, issued;
    if (threadIdx.x == 0) init(issued, 1), init(first, 1);
    prepare(a, x, b, y, base, done);
    u32 d = base;
    if (threadIdx.x == 0) {
        multiply(d, a, b, 0);  /*@first*/
        commit_to(first);
#ifndef RACY
        fence_before_sync();
#endif
        asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(shared(&issued)) : "memory");
    }
    if (threadIdx.x == 32) {
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [%0], 0; @!p bra again; }"
                     ::"r"(shared(&issued)) : "memory");
        fence_after_sync();
        multiply(d, a, b, 1);  /*@second*/
        commit_to(done);
    }
    wait(first, 0);
    wait(done, 0);
    for (u32 column = 0; column < COLUMNS; column += 8) {
        float v[8];
        load(v, own_lanes(d) + column);
        wait_loads();
        put(out, column, v);
    }
    __syncthreads();
    if (threadIdx.x < 32) dealloc(d, COLUMNS);
}
