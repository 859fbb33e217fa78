// barrier.sync.aligned in a branch that half of a warp takes; without .aligned it may be met in parts, from one place or two. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @point severity=error
// allow: data-race
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
#ifdef RACY
    if (t % 32 < 16) asm volatile("barrier.sync.aligned 0; // here" ::: "memory");  /*@point*/
    else asm volatile("barrier.sync.aligned 0; // there" ::: "memory");
#else
    if (t % 32 < 16) asm volatile("barrier.sync 0; // here" ::: "memory");
    else asm volatile("barrier.sync 0; // there" ::: "memory");
#endif
    out[t] = tile[63 - t];
}
