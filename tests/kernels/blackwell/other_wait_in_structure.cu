// Before the product its thread waits for the accumulator only, and not for the copy. Both mbarriers are in one structure (R-B1).
// launch: grid=1 block=64 smem=16384 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: missing-wait RAW @load @multiply severity=error
// allow: lifetime severity=error
#include "../blackwell.cuh"
struct Shared {
    alignas(128) f16 a[128 * 16], b[64 * 16];
    u64 full, free, done;
    u32 base;
};
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    alignas(128) extern __shared__ char memory[];
    Shared& s = *(Shared*)memory;
    fill(s.a, x, 128);
    if (threadIdx.x == 0) init(s.full, 1), init(s.free, 1), init(s.done, 1);
    if (threadIdx.x < 32) alloc(s.base, 64);
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x == 32) {
        arrive(s.free);
        expect(s.full, 64 * 16 * 2);
        bulk_load(s.b, y, 64 * 16 * 2, s.full);  /*@load*/
    }
    if (threadIdx.x == 0) {
#ifndef RACY
        wait(s.full, 0);
#endif
        wait(s.free, 0);
        multiply(s.base, s.a, s.b, 0);  /*@multiply*/
        commit_to(s.done);
    }
    wait(s.done, 0);
    __syncthreads();
    if (threadIdx.x < 32) dealloc(s.base, 64);
}
