// One warp produces for two, but in the racy twin only one of the two joins the barrier.
// launch: grid=1 block=96
// arg: x f32[32]=arange
// arg: out f32[64]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = np.tile(x[::-1], 2)
#ifdef RACY
#define JOINS(warp) ((warp) < 2)
#define COUNT "64"
#else
#define JOINS(warp) true
#define COUNT "96"
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float buffer[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == 0) buffer[lane] = 0.0f;
    __syncthreads();
    if (warp == 0) {
        buffer[lane] = x[lane];  /*@write*/
    }
    if (JOINS(warp)) asm volatile("bar.sync 1, " COUNT ";" ::: "memory");
    if (warp > 0) {
        out[(warp - 1) * 32 + lane] = buffer[31 - lane];  /*@read*/
    }
}
