// Two groups of warps take turns at one buffer, by named barriers whose numbers are computed. The racy ones give the turn away before they read.
// launch: grid=1 block=128
// arg: x f32[384]=arange
// arg: out f32[384]=zeros
// expect: data-race @write @read severity=error
// result: out = x.reshape(6, 64)[:, ::-1]
#define SYNC(id, count) asm volatile("bar.sync %0, " count ";" ::"r"(id) : "memory")
#define ARRIVE(id, count) asm volatile("bar.arrive %0, " count ";" ::"r"(id) : "memory")
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float buffer[64];
    int group = threadIdx.x / 64, t = threadIdx.x % 64;
    if (group == 1) ARRIVE(1, "128");
#pragma unroll 1
    for (int k = 0; k < 3; k++) {
        int at = (2 * k + group) * 64 + t;
        SYNC(1 + group, "128");
        buffer[t] = x[at];  /*@write*/
        SYNC(3 + group, "64");
#ifdef RACY
        ARRIVE(2 - group, "128");  // gives the turn away
#endif
        float value = buffer[63 - t];  /*@read*/
#ifndef RACY
        ARRIVE(2 - group, "128");
#endif
        out[at] = value;
    }
    if (group == 0) SYNC(1, "128");
}
