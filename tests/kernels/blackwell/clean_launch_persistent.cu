// Persistent CTAs take over the work of those that have not started: one slot, freed by a barrier (R-C1 to R-C4).
// launch: grid=6 block=64 arch=sm_100a
// arg: out u32[6,64]=zeros
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
            request(response, full);
        }
        out[tile * blockDim.x + threadIdx.x] += 1;
        wait(full, parity);
        if (!taken(response, tile)) break;
        fence_async_shared();
        __syncthreads();
    }
}
