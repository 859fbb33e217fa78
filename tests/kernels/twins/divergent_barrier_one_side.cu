// Half of a warp waits at an aligned barrier that the other half does not come to before it has taken another branch (R-BAR1).
// What that does is undefined, so no chip runs it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse|deadlock @one @other severity=error
// allow: deadlock
// allow: data-race
// allow: uninitialized-read
// result: out = x[::-1] + 1
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    float more = 0;
    tile[t] = x[t];
#ifdef RACY
    if (t % 32 < 16) {
        asm volatile("bar.sync 1, 64;" ::: "memory");  /*@one*/
        more = 1;
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory");  /*@other*/
        more = 1;
    }
#else
    asm volatile("bar.sync 1, 64;" ::: "memory");
    if (t % 32 < 16) more = 1;
    else more = 1;
#endif
    out[t] = tile[63 - t] + more;
}
