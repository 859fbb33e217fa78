// Atomics of one width on one word, from every warp and without a barrier between them.
// launch: grid=1 block=128
// arg: x i32[128]=arange
// arg: out i32[8]=zeros
// result: out = np.array([x.sum(), 127, 1, 127, 0, -1, x.sum(), 0])
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ int s[6];
    __shared__ float f;
    __shared__ unsigned long long wide;
    int t = threadIdx.x;
    if (t < 6) s[t] = t == 2 ? 200 : t == 5 ? -1 : 0;
    if (t == 0) { f = 0.0f; wide = 0; }
    __syncthreads();
    atomicAdd(&s[0], x[t]);
    atomicMax(&s[1], x[t]);
    atomicMin(&s[2], x[t] + 1);
    atomicOr((unsigned*)&s[3], (unsigned)x[t]);
    atomicCAS(&s[4], -5, x[t]);
    atomicExch(&s[5], -1);
    atomicAdd(&f, (float)x[t]);
    atomicAdd(&wide, (unsigned long long)x[t] << 32);
    __syncthreads();
    if (t < 6) out[t] = s[t];
    if (t == 6) out[6] = (int)f;
    if (t == 7) out[7] = (int)wide;
}
