// The lanes of a warp make different numbers of rounds with __syncthreads(). Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @point severity=error
// allow: data-race
// result: out = x - 1
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
#ifdef RACY
    int rounds = t % 2 ? 2 : 3;
#else
    int rounds = 3;
#endif
    for (int i = 0; i < rounds; ++i) {
        tile[t] = x[t] + i;
        __syncthreads();  /*@point*/
        out[t] = tile[t];
    }
    if (rounds) out[t] -= rounds;
}
