// As arrived_at_issue, with all mbarriers in one structure in dynamic shared memory, and commits to another one of them in each round (R-T1).
// launch: grid=1 block=128 smem=8192 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: missing-wait RAW @multiply @load severity=error
// allow: barrier-misuse|missing-wait|lifetime severity=error
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
#include "../blackwell.cuh"
struct Shared {
    alignas(128) f16 a[128 * 16], b[64 * 16];
    u64 done, empty[2], full;
    u32 base;
};
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    alignas(128) extern __shared__ char memory[];
    Shared& s = *(Shared*)memory;
    if (threadIdx.x == 0) init(s.empty[0], 1), init(s.empty[1], 1), init(s.full, 1);
    prepare(s.a, x, s.b, y, s.base, s.done);
    if (threadIdx.x == 0) {
        for (u32 step = 0; step < 2; ++step) {
            multiply(s.base, s.a, s.b, 0);  /*@multiply*/
            commit_to(s.empty[step]);
        }
#ifdef RACY
        arrive(s.full);
#else
        commit_to(s.full);
#endif
    }
    wait(s.full, 0);
    float v[8];
    for (u32 column = 0; column < COLUMNS; column += 8) {
        load(v, own_lanes(s.base) + column);  /*@load*/
        wait_loads();
        put(out, column, v);
    }
    wait(s.empty[1], 0);
    __syncthreads();
    if (threadIdx.x < 32) dealloc(s.base, COLUMNS);
}
