// G2, both sides of a flag: nothing publishes the partial sums before the counter, and nothing acquires them after it. One fence without the
// other orders nothing, so the report names both.
//
// launch: grid=4 block=64
// arg:    partial f32[4]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: global-race RAW @store @load severity=error
// result: out = np.float32([640])
extern "C" __global__ void kernel(float* partial, unsigned* count, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = 64.0f * (blockIdx.x + 1);  /*@store*/
#ifndef RACY
        __threadfence();
#endif
        last = atomicAdd(count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
#ifndef RACY
        __threadfence();
#endif
        float sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += partial[i];  /*@load*/
        out[0] = sum;
    }
}
