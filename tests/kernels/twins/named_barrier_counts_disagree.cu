// Two warps meet at one barrier and disagree on how many threads it takes (undefined behaviour: not run on a chip).
// launch: grid=1 block=64
// backends: cpu
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @barrier severity=error
// allow: deadlock
// allow: data-race
// allow: uninitialized-read
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float buffer[64];
    int t = threadIdx.x, count = 64;
#ifdef RACY
    if (t >= 32) count = 96;
#endif
    buffer[t] = x[t];
    asm volatile("bar.sync 1, %0;" :: "r"(count) : "memory");  /*@barrier*/
    out[t] = buffer[63 - t];
}
