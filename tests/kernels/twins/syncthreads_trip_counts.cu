// One of two warps leaves a loop one iteration early and waits behind it, at another __syncthreads(). All warps arrive equally often, so nothing hangs
// (R-BAR4).
// launch: grid=1 block=64
// arg: x f32[192]=random
// arg: out f32[64]=zeros
// expect: barrier-misuse @loop @behind severity=warning
// result: out = np.where(np.arange(64) < 32, x.reshape(3, 64).sum(axis=0), x.reshape(3, 64)[:2].sum(axis=0))
extern "C" __global__ void kernel(const float* x, float* out) {
    int t = threadIdx.x;
    float sum = 0;
#ifdef RACY
    int turns = t < 32 ? 3 : 2;
#else
    int turns = 3;
#endif
#pragma unroll 1
    for (int i = 0; i < turns; i++) {
        if (i < 2 || t < 32) sum += x[i * 64 + t];
        __syncthreads();  /*@loop*/
    }
#ifdef RACY
    if (t >= 32) __syncthreads();  /*@behind*/
#endif
    out[t] = sum;
}
