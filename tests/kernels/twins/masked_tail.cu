// The tail of a tile has no values. Each thread loads from there, too, and a mask throws these values away (R-UNINIT: a note). The racy mask
// lets one of them through.
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// arg: n i32=50
// expect: uninitialized-read @read severity=error
// result: out = np.array([max([i for i in range(50) if i % 4 == t % 4]) for t in range(64)])
extern "C" __global__ void kernel(const float* x, float* out, int n) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t < n) tile[t] = x[t];
    __syncthreads();
    float most = -1.0f;
    for (int i = t % 4; i < 64; i += 4) {
        float value = tile[i]; /*@read*/
#ifdef RACY
        most = fmaxf(most, i <= n ? value : -1.0f);
#else
        most = fmaxf(most, i < n ? value : -1.0f);
#endif
    }
    out[t] = most;
}
