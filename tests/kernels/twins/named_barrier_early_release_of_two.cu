// Two groups of warps use one array in turns, at named barriers that the group chooses: the racy form gives the turn away before its reads.
// launch: grid=1 block=128
// arg: x f32[512]=arange
// arg: out f32[2,4,64]=zeros
// arg: rounds i32=4
// expect: data-race WAR @write @read severity=error
// result: out = x.reshape(2, 4, 64)[:, :, ::-1]
enum { TURN = 1, GROUP = 3 };  // of the first group
#define SYNC(id, threads) asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory")
#define ARRIVE(id) asm volatile("bar.arrive %0, 128;" ::"r"(id) : "memory")
extern "C" __global__ void kernel(const float* x, float* out, int rounds) {
    __shared__ float scratch[64];
    int group = threadIdx.x / 64, t = threadIdx.x % 64;
    if (group == 1) ARRIVE(TURN);
    for (int k = 0; k < rounds; k++) {
        SYNC(TURN + group, 128);
        scratch[t] = x[(group * 4 + k) * 64 + t];  /*@write*/
        SYNC(GROUP + group, 64);
#ifdef RACY
        if (group == 0 || k < rounds - 1) ARRIVE(TURN + 1 - group);
#endif
        out[(group * 4 + k) * 64 + t] = scratch[63 - t];  /*@read*/
#ifndef RACY
        SYNC(GROUP + group, 64);
        if (group == 0 || k < rounds - 1) ARRIVE(TURN + 1 - group);
#endif
    }
}
