// Two stages of copies. Each thread waits for its own copies, and no barrier comes before it reads those of others.
// launch: grid=1 block=64
// arg: x f32[256]=arange
// arg: out f32[64]=zeros
// expect: missing-wait RAW @copy @read severity=error
// allow: missing-wait
// allow: data-race
// result: out = x.reshape(4, 64)[:, ::-1].sum(0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(16) float stage[2][64];
    int t = threadIdx.x;
    float sum = 0;
    for (int i = 0; i < 5; i++) {
        if (i < 4 && t < 16) COPY16(&stage[i % 2][4 * t], x + 64 * i + 4 * t);  /*@copy*/
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (i == 0) continue;
        asm volatile("cp.async.wait_group 1;" ::: "memory");
#ifndef RACY
        __syncthreads();
#endif
        sum += stage[(i - 1) % 2][63 - t];  /*@read*/
        __syncthreads();
    }
    out[t] = sum;
}
