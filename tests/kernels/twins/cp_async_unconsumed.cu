// The pipeline prefetches past its end (the last tile again), nobody consumes those copies, and they still land when the
// epilogue has put its output tile into the same memory. Cure: wait_group 0 before the epilogue's barrier.
// launch: grid=1 block=64 smem=3072
// arg: x f32[1024]=arange
// arg: out f32[64]=zeros
// arg: tiles i32=4
// expect: missing-wait @copy @epilogue_write severity=error
// allow: missing-wait @copy @epilogue_read
// result: out = x.reshape(4, 256)[:, 3::4].sum(axis=0)
#define CP_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" \
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out, int tiles) {
    extern __shared__ __align__(16) float stage[];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < 2; k++) {
        CP_ASYNC16(&stage[k * 256 + 4 * t], &x[k * 256 + 4 * t]);
        COMMIT();
    }
#pragma unroll 1
    for (int k = 0; k < tiles; k++) {
        WAIT(1);
        __syncthreads();
        sum += stage[k % 3 * 256 + 255 - 4 * t];
        int next = min(k + 2, tiles - 1);
        CP_ASYNC16(&stage[(k + 2) % 3 * 256 + 4 * t], &x[next * 256 + 4 * t]);  /*@copy*/
        COMMIT();
    }
#ifndef RACY
    WAIT(0);
#endif
    __syncthreads();
    for (int k = 0; k < 3; k++) {
        stage[k * 256 + t] = sum;  /*@epilogue_write*/
    }
    __syncthreads();
    out[t] = stage[63 - t];  /*@epilogue_read*/
}
