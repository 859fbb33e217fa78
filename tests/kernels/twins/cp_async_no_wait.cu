// Copies are committed and a barrier is passed, but nobody waits for the copies: the barrier says nothing about them.
// launch: grid=2 block=64
// arg: x f32[512]=arange
// arg: out f32[512]=zeros
// expect: missing-wait @copy @read severity=error
// result: out = x.reshape(2, 256)[:, ::-1].reshape(-1)
#define CP_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" \
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(16) float tile[256];
    int t = threadIdx.x, base = blockIdx.x * 256;
    CP_ASYNC16(&tile[4 * t], &x[base + 4 * t]);  /*@copy*/
    COMMIT();
#ifndef RACY
    WAIT(0);
#endif
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        out[base + k * 64 + t] = tile[255 - (k * 64 + t)];  /*@read*/
    }
}
