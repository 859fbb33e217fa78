// A producer refills a ring of two stages, whose mbarriers are in a structure in dynamic shared memory. Under RACY it waits for one parity in all rounds (R-B1).
// launch: grid=1 block=64 smem=512 arch=sm_90
// arg: x f32[8,32]=arange
// arg: out f32[32]=zeros
// arg: rounds i32=8
// expect: missing-wait WAW @load severity=error
// backends: cpu
// allow: data-race|missing-wait|barrier-misuse|deadlock severity=error
// result: out = x.sum(axis=0)[::-1]
#include "../hopper.cuh"
struct Shared {
    alignas(128) float ring[2][32];
    u64 full[2], empty[2];
};
extern "C" __global__ void kernel(const float* x, float* out, int rounds) {
    alignas(128) extern __shared__ char memory[];
    Shared& s = *(Shared*)memory;
    u32 t = threadIdx.x;
    if (t == 0)
        for (u32 i = 0; i < 2; ++i) init(s.full[i], 1), init(s.empty[i], 1);
    __syncthreads();
    if (t == 32) {
        u32 stage = 0, phase = 0;
        for (int i = 0; i < rounds; ++i) {
#ifdef RACY
            wait(s.empty[stage], 1);
#else
            wait(s.empty[stage], phase ^ 1);
#endif
            expect(s.full[stage], 128);
            bulk_load(s.ring[stage], x + 32 * i, 128, s.full[stage]);  /*@load*/
            if (++stage == 2) stage = 0, phase ^= 1;
        }
    } else if (t < 32) {
        float sum = 0;
        for (int i = 0; i < rounds; ++i) {
            wait(s.full[i & 1], i >> 1 & 1);
            sum += s.ring[i & 1][31 - t];
            __syncwarp();
            if (t == 0) arrive(s.empty[i & 1]);
        }
        out[t] = sum;
    }
}
