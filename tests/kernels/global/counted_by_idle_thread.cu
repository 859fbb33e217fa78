// G6: each thread that stores has a fence.sc, and a thread that stores nothing counts behind the barrier. The fence of the reader lacks.
//
// launch: grid=4 block=64
// arg:    partial f32[128]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[32]=zeros
// expect: global-race RAW @store @load severity=error
// result: out = 4 * np.arange(32, dtype=np.float32)
extern "C" __global__ void kernel(float* partial, unsigned* count, float* out) {
    __shared__ bool last;
    int t = threadIdx.x;
    if (t >= 32) partial[blockIdx.x * 32 + t - 32] = t - 32;  /*@store*/
    __threadfence();
    __syncthreads();
    if (t == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last || t < 32) return;
#ifndef RACY
    __threadfence();
#endif
    float sum = 0;
    for (int i = 0; i < 4; i++) sum += partial[i * 32 + t - 32];  /*@load*/
    out[t - 32] = sum;
}
