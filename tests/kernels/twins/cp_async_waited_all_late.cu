// A tile with a halo of zeros: each thread waits for all of its own copies, which commits them, too, but under RACY only behind the barrier (R-CP2).
// launch: grid=2 block=64
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: missing-wait RAW @copy @read severity=error
// result: out = np.where(np.arange(128) % 64 == 63, 0, np.roll(x, -1)) + x
#define COPY4(to, from, size) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" \
                 ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)), "r"(size) : "memory")
#define WAIT_ALL() asm volatile("cp.async.wait_all;" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[65];
    int t = threadIdx.x;
    const float* own = x + blockIdx.x * 64;
    for (int i = t; i < 65; i += 64) COPY4(&tile[i], i < 64 ? own + i : own, i < 64 ? 4 : 0);  /*@copy*/
#ifdef RACY
    __syncthreads();
    WAIT_ALL();
#else
    WAIT_ALL();
    __syncthreads();
#endif
    out[blockIdx.x * 64 + t] = tile[t] + tile[t + 1];  /*@read*/
}
