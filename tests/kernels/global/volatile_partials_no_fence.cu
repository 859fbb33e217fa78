// R-MO1, the release side: the reduction of CUDA's threadFenceReduction sample without its __threadfence(). The partial sums are volatile, so
// there is no race, and the last CTA may still add up old ones.
//
// launch: grid=4 block=32
// arg:    partial f32[4]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = np.float32([10])
extern "C" __global__ void kernel(volatile float* partial, unsigned* count, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x + 1;  /*@store*/
#ifndef RACY
        __threadfence();
#endif
        last = atomicInc(count, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += partial[i];  /*@load*/
        *out = sum;
        *count = 0;
    }
}
