// The halves of one warp reach two different aligned barriers: bar.sync wants the whole warp at one (undefined behaviour,
// not run on a chip). Whole warps at different barriers are legal: that is the fixed twin.
// launch: grid=1 block=64
// backends: cpu
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse|deadlock severity=error
// allow: deadlock
// allow: data-race
// allow: uninitialized-read
// result: out = x[::-1]
#ifdef RACY
#define GROUP 16
#else
#define GROUP 32
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float buffer[64];
    int t = threadIdx.x;
    buffer[t] = x[t];
    if (t % (2 * GROUP) < GROUP) {
        asm volatile("bar.sync 0; // first half" ::: "memory");
    } else {
        asm volatile("bar.sync 0; // second half" ::: "memory");
    }
    out[t] = buffer[63 - t];
}
