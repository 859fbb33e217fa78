// The last warp of a reduction trusts lockstep: wrong since Volta.
// launch: grid=1 block=64
// arg: x f32[64]=random
// arg: out f32[1]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x.sum().reshape(1)
#ifdef RACY
#define SYNCWARP()
#else
#define SYNCWARP() __syncwarp()
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 32) {
#pragma unroll 1
        for (int d = 32; d >= 1; d /= 2) {
            float other = s[t + d];  /*@read*/
            SYNCWARP();
            s[t] += other;  /*@write*/
            SYNCWARP();
        }
    }
    if (t == 0) out[0] = s[0];
}
