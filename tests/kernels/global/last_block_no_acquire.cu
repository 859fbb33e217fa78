// G2, the acquire side: the last block reads with plain loads after a relaxed atomic and a barrier (the pytorch 128455 shape).
//
// launch: grid=4 block=64
// arg:    partial f32[256]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[64]=zeros
// expect: global-race RAW @store @load severity=error
// result: out = 4 * np.arange(64, dtype=np.float32)
extern "C" __global__ void kernel(float* partial, unsigned* count, float* out) {
    __shared__ bool last;
    partial[blockIdx.x * 64 + threadIdx.x] = threadIdx.x;  /*@store*/
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
#ifndef RACY
    __threadfence();
#endif
    float sum = 0;
    for (int i = 0; i < 4; i++) sum += partial[i * 64 + threadIdx.x];  /*@load*/
    out[threadIdx.x] = sum;
}
