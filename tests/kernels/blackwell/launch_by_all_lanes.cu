// All lanes of a warp request, each into the same slot (R-C8).
// launch: grid=6 block=64 arch=sm_100a
// arg: out u32[6,64]=zeros
// expect: clc-misuse @request severity=error
// allow: data-race WAW @request severity=error
// allow: clc-misuse @request @seen severity=error
// result: out = np.ones((6, 64), np.uint32)
#include "../blackwell.cuh"
#ifdef RACY
constexpr u32 REQUESTS = 32;
#else
constexpr u32 REQUESTS = 1;
#endif
extern "C" __global__ void kernel(u32* out) {
    __shared__ Response response;
    __shared__ u64 full;
    if (threadIdx.x == 0) init(full, 1);
    __syncthreads();
    u32 tile = blockIdx.x;
    for (u32 parity = 0;; parity ^= 1) {
        if (threadIdx.x == 0) expect(full, 16 * REQUESTS);
        if (threadIdx.x < REQUESTS) request(response, full);  /*@request*/
        out[tile * blockDim.x + threadIdx.x] += 1;
        wait(full, parity);
        if (!taken(response, tile)) break;  /*@seen*/
        fence_async_shared();
        __syncthreads();
    }
}
