// A named barrier counts three warps, and one of them goes another way.
// Not run on a chip: it would wait there.
// backends: cpu
// launch: grid=1 block=96
// arg: x f32[96]=arange
// arg: out f32[96]=zeros
// expect: deadlock @wait severity=error
// result: out = x[::-1]
#ifdef RACY
#define TAKES_PART (threadIdx.x < 64)
#else
#define TAKES_PART true
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[96];
    int t = threadIdx.x;
    tile[t] = x[t];
    if (TAKES_PART) {
        asm volatile("bar.sync 1, 96;" ::: "memory");  /*@wait*/
        out[t] = tile[95 - t];
    }
}
