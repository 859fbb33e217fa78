// The barrier of a response publishes nothing else: here what its thread stores after the arrival (R-C10).
// launch: grid=6 block=64 arch=sm_100a
// arg: out u32[6,64]=zeros
// expect: data-race RAW @store @load severity=error
// result: out = np.ones((6, 64), np.uint32)
#include "../blackwell.cuh"
extern "C" __global__ void kernel(u32* out) {
    __shared__ Response response;
    __shared__ u64 full;
    __shared__ u32 factor;
    if (threadIdx.x == 0) init(full, 1), factor = 0;
    __syncthreads();
    u32 tile = blockIdx.x;
    bool more = true;
    for (u32 parity = 0; more; parity ^= 1) {
        if (threadIdx.x == 0) {
#ifndef RACY
            factor = 1;
#endif
            expect(full, 16);
            request(response, full);
#ifdef RACY
            factor = 1;  /*@store*/
#endif
        }
        wait(full, parity);
        out[tile * blockDim.x + threadIdx.x] += factor;  /*@load*/
        more = taken(response, tile);
        fence_async_shared();
        __syncthreads();
    }
}
