// A tree reduction that takes the last 64 elements for one warp's work: the level of 32 reads what warp 1 wrote.
// launch: grid=1 block=256
// arg: x f32[256]=random
// arg: out f32[1]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x.sum().reshape(1)
#ifdef RACY
#define LAST 64
#else
#define LAST 32
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int d = 128; d >= 1; d /= 2) {
        if (t < d) {
            float other = s[t + d];  /*@read*/
            s[t] += other;           /*@write*/
        }
        if (d > LAST) __syncthreads(); else __syncwarp();
    }
    if (t == 0) out[0] = s[0];
}
