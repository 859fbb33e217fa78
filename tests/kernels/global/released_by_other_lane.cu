// G9: lane 0 releases; what the other lanes have read before needs a barrier of the warp before it.
//
// launch: grid=2 block=32
// arg:    data f32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[32]=zeros
// expect: global-race WAR @load @store severity=error
// result: data = np.ones(1, dtype=np.float32)
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    if (blockIdx.x == 0) {
        out[threadIdx.x] = data[0];  /*@load*/
#ifndef RACY
        __syncwarp();
#endif
        if (threadIdx.x == 0) asm volatile("red.release.gpu.add.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else if (threadIdx.x == 0) {
        unsigned seen = 0;
        while (!seen) asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        data[0] = 1;  /*@store*/
    }
}
