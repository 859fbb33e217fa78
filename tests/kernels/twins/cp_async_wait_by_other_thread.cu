// Warp 0 issues the copies and warp 1 waits: groups belong to the thread that committed them, so it waits for nothing.
// launch: grid=1 block=64
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: missing-wait @copy @read severity=error
// result: out = x[::-1]
#define CP_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" \
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
#ifdef RACY
#define WAITER 1
#else
#define WAITER 0
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(16) float tile[128];
    int t = threadIdx.x, warp = t / 32;
    if (warp == 0) {
        CP_ASYNC16(&tile[4 * t], &x[4 * t]);  /*@copy*/
        COMMIT();
    }
    if (warp == WAITER) WAIT(0);
    __syncthreads();
    for (int k = 0; k < 2; k++) {
        out[k * 64 + t] = tile[127 - (k * 64 + t)];  /*@read*/
    }
}
