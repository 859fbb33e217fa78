// G2, the release side: a two-stage reduction whose partial sums nothing publishes before the counter (the kokkos 2681 shape).
//
// launch: grid=4 block=64
// arg:    partial f32[4]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: global-race RAW @store @load severity=error
// result: out = np.float32([640])
extern "C" __global__ void kernel(float* partial, unsigned* count, float* out) {
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = 64.0f * (blockIdx.x + 1);  /*@store*/
#ifndef RACY
        __threadfence();
#endif
        if (atomicAdd(count, 1) == gridDim.x - 1) {
            __threadfence();
            float sum = 0;
            for (int i = 0; i < gridDim.x; i++) sum += partial[i];  /*@load*/
            out[0] = sum;
        }
    }
}
