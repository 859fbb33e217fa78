// R-CP3: all lanes of a warp copy into the same bytes by cp.async. From one source it is one value (CUTLASS copies its scales so); from two it is a race.
//
// launch: grid=1 block=64 arch=sm_80
// arg:    x f32[64]=arange
// arg:    out f32[64]=zeros
// expect: data-race WAW @copy @copy severity=error
// backends: cpu
// result: out = np.full(64, 0, dtype=np.float32)
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float scale[4];
    int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(scale);
    if (t < 32) {
#ifdef RACY
        const float* from = x + t;
#else
        const float* from = x;
#endif
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");  /*@copy*/
        asm volatile("cp.async.wait_all;" ::: "memory");
    }
    __syncthreads();
    out[t] = scale[0];
}
