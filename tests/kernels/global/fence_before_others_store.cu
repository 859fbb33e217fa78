// G5: thread 0's fence publishes what its CTA has stored if a barrier stands between the stores and the fence (the nvFuser 2391 shape).
//
// launch: grid=2 block=64
// arg:    data f32[64]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[64]=zeros
// expect: global-race @store @load severity=error
// result: out = np.arange(64, dtype=np.float32)
extern "C" __global__ void kernel(float* data, volatile unsigned* flag, float* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x;  /*@store*/
#ifndef RACY
        __syncthreads();
#endif
        if (threadIdx.x == 0) {
            __threadfence();
            *flag = 1;
        }
    } else {
        if (threadIdx.x == 0) {
            while (!*flag) {}
            __threadfence();
        }
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x];  /*@load*/
    }
}
