// A request after the CTA has seen a refusal (R-C4).
// launch: grid=6 block=64 arch=sm_100a
// arg: out u32[6,64]=zeros
// expect: clc-misuse @seen @request severity=error
// result: out = np.ones((6, 64), np.uint32)
#include "../blackwell.cuh"
extern "C" __global__ void kernel(u32* out) {
    __shared__ Response response;
    __shared__ u64 full;
    if (threadIdx.x == 0) init(full, 1);
    __syncthreads();
    u32 tile = blockIdx.x;
    bool more = true;
    for (u32 parity = 0; more; parity ^= 1) {
        if (threadIdx.x == 0) {
            expect(full, 16);
            request(response, full);  /*@request*/
        }
        out[tile * blockDim.x + threadIdx.x] += 1;
        wait(full, parity);
        more = taken(response, tile);  /*@seen*/
        fence_async_shared();
        __syncthreads();
#ifdef RACY
        if (more) continue;
        if (threadIdx.x == 0) {
            expect(full, 16);
            request(response, full);  /*@request*/
        }
        wait(full, parity ^ 1);
#endif
    }
}
