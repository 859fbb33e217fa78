// Each of two warps raises its flag in shared memory and works if the other's is not up. Without fence.sc between store and load in both, both
// may work (R-MO2). Here both run in step and see each other, and no fence is in the text.
// launch: grid=1 block=64
// arg: out f32[2]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = np.zeros(2)
extern "C" __global__ void kernel(float* out) {
    __shared__ volatile unsigned flags[64];
    flags[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x % 32) return;
    int w = threadIdx.x / 32;
    flags[w * 32] = 1;  /*@store*/
#ifndef RACY
    __threadfence_block();
#endif
    if (flags[(w ^ 1) * 32] == 0) out[w] = 0;  /*@load*/
}
