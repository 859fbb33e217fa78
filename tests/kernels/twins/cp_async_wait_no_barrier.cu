// Everybody waits for its own copies and reads those of others: the wait serves the thread that issued, no one else.
// Whether the foreign copy is still in flight when the read comes is luck: either kind is right.
// launch: grid=1 block=64
// arg: x f32[256]=arange
// arg: out f32[256]=zeros
// expect: missing-wait|data-race @copy @read severity=error
// result: out = x[::-1]
#define CP_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" \
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(16) float tile[256];
    int t = threadIdx.x;
    for (int k = 0; k < 4; k++) tile[k * 64 + t] = 0.0f;
    __syncthreads();
    CP_ASYNC16(&tile[4 * t], &x[4 * t]);  /*@copy*/
    COMMIT();
    WAIT(0);
#ifndef RACY
    __syncthreads();
#endif
    for (int k = 0; k < 4; k++) {
        out[k * 64 + t] = tile[255 - (k * 64 + t)];  /*@read*/
    }
}
