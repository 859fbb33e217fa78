// G2, the acquire side: a device function that is called waits for the flag.
//
// launch: grid=2 block=32
// arg:    data f32[32]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[32]=zeros
// expect: global-race RAW @store @load severity=error
// result: out = np.arange(32)
__device__ __noinline__ void wait(volatile unsigned* flag) {
    while (*flag == 0);
#ifndef RACY
    __threadfence();
#endif
}
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t;  /*@store*/
        __threadfence();
        __syncwarp();
        if (t == 0) *(volatile unsigned*)flag = 1;
    } else {
        wait(flag);
        out[t] = data[t];  /*@load*/
    }
}
