// A barrier counts the threads that have work, and not their warps (undefined behaviour: not run on a chip).
// launch: grid=1 block=96
// backends: cpu
// arg: x f32[80]=arange
// arg: out f32[80]=zeros
// arg: n i32=80
// expect: barrier-misuse @barrier severity=error
// allow: data-race
// allow: uninitialized-read
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out, int n) {
    __shared__ float buffer[96];
    int t = threadIdx.x, count = (n + 31) / 32 * 32;
#ifdef RACY
    count = n;
#endif
    if (t < n) buffer[t] = x[t];
    __syncwarp();
    asm volatile("barrier.sync 1, %0;" :: "r"(count) : "memory");  /*@barrier*/
    if (t < n) out[t] = buffer[n - 1 - t];
}
