// wait_group covers committed groups only: a wait that stands before the commit waits for nothing.
// launch: grid=1 block=64
// arg: x f32[256]=arange
// arg: out f32[256]=zeros
// expect: missing-wait @copy @read severity=error
// result: out = x[::-1]
#define CP_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" \
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(16) float tile[256];
    int t = threadIdx.x;
    CP_ASYNC16(&tile[4 * t], &x[4 * t]);  /*@copy*/
#ifdef RACY
    WAIT(0);
    COMMIT();
#else
    COMMIT();
    WAIT(0);
#endif
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        out[k * 64 + t] = tile[255 - (k * 64 + t)];  /*@read*/
    }
}
