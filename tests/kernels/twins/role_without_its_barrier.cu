// R-RACE: two warps of one role hand a tile on, and meet at a barrier of their own elsewhere: a barrier of the CTA never ends between them.
// launch: grid=1 block=96
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = (2 * x)[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    const int t = threadIdx.x;
    if (t >= 64) return;  // the warp of the other role
    asm volatile("bar.sync 1, 64;" ::: "memory");
    tile[t] = 2 * x[t];  /*@write*/
#ifndef RACY
    asm volatile("bar.sync 1, 64;" ::: "memory");
#endif
    out[t] = tile[63 - t];  /*@read*/
}
