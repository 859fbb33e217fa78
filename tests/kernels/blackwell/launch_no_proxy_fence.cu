// The response is read and the next request written, in order, but through different proxies (R-C3, T12).
// launch: grid=6 block=64 arch=sm_100a
// arg: out u32[6,64]=zeros
// policy: isa
// expect: missing-proxy-fence WAR @read @request severity=warning
// result: out = np.ones((6, 64), np.uint32)
#include "../blackwell.cuh"
extern "C" __global__ void kernel(u32* out) {
    __shared__ Response response;
    __shared__ u64 full;
    if (threadIdx.x == 0) init(full, 1);
    __syncthreads();
    u32 tile = blockIdx.x;
    for (u32 parity = 0;; parity ^= 1) {
        if (threadIdx.x == 0) {
            expect(full, 16);
            request(response, full);  /*@request*/
        }
        out[tile * blockDim.x + threadIdx.x] += 1;
        wait(full, parity);
        if (!taken(response, tile)) break;  /*@read*/
#ifndef RACY
        fence_async_shared();
#endif
        __syncthreads();
    }
}
