// The thread that multiplies hands a stage back by an arrival, when the product is issued. It commits both products at the end (R-T2).
// launch: grid=1 block=64 smem=16384 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[2,64,16]=random
// arg: out f32[128,64]=zeros
// expect: missing-wait WAR @multiply @load severity=error
// allow: missing-wait|data-race|barrier-misuse severity=error
#include "../blackwell.cuh"
struct Shared {
    alignas(128) f16 a[128 * 16], b[64 * 16];
    u64 full, empty, done;
    u32 base;
};
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    alignas(128) extern __shared__ char memory[];
    Shared& s = *(Shared*)memory;
    fill(s.a, x, 128);
    if (threadIdx.x == 0) init(s.full, 1), init(s.empty, 1), init(s.done, 1);
    if (threadIdx.x < 32) alloc(s.base, 64);
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x == 0) {
        for (u32 round = 0; round < 2; ++round) {
            wait(s.empty, round & 1 ^ 1);
            expect(s.full, 64 * 16 * 2);
            bulk_load(s.b, y + round * 64 * 16, 64 * 16 * 2, s.full);  /*@load*/
        }
    }
    if (threadIdx.x == 32) {
        for (u32 round = 0; round < 2; ++round) {
            wait(s.full, round & 1);
            multiply(s.base, s.a, s.b, round);  /*@multiply*/
#ifdef RACY
            arrive(s.empty);
#else
            commit_to(s.empty);
#endif
        }
        commit_to(s.done);
    }
    wait(s.done, 0);
    __syncthreads();
    if (threadIdx.x < 32) dealloc(s.base, 64);
}
