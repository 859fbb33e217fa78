// The barrier that keeps a stage from being refilled while others still read it is missing. Whether the copy is issued
// before or after the read is luck: either kind is right.
// launch: grid=1 block=64
// arg: x f32[1024]=arange
// arg: out f32[64]=zeros
// arg: tiles i32=4
// expect: data-race|missing-wait @copy @read severity=error
// result: out = x.reshape(4, 256)[:, ::-4].sum(axis=0)
#define CP_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" \
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out, int tiles) {
    __shared__ __align__(16) float stage[256];
    int t = threadIdx.x;
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < tiles; k++) {
        CP_ASYNC16(&stage[4 * t], &x[k * 256 + 4 * t]);  /*@copy*/
        COMMIT();
        WAIT(0);
        __syncthreads();
        sum += stage[255 - 4 * t];  /*@read*/
#ifndef RACY
        __syncthreads();
#endif
    }
    out[t] = sum;
}
