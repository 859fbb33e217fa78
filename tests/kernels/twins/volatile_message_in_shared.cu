// R-MO1 in shared memory, the acquire side, scalars: the reading warp polls a volatile flag and then reads volatile data.
//
// launch: grid=1 block=64
// arg:    out f32[1]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = np.float32([6])
extern "C" __global__ void kernel(float* out) {
    __shared__ volatile int flag;
    __shared__ volatile float data[3];
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 32) {
        data[0] = 1, data[1] = 2, data[2] = 3;  /*@store*/
        __threadfence_block();
        flag = 1;
    } else if (threadIdx.x == 0) {
        while (!flag) {}
#ifndef RACY
        __threadfence_block();
#endif
        out[0] = data[0] + data[1] + data[2];  /*@load*/
    }
}
