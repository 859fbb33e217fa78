// Requests in flight in two slots: after a refusal the one that is left is only waited for.
// launch: grid=6 block=64 arch=sm_100a
// arg: out u32[6,64]=zeros
// result: out = np.ones((6, 64), np.uint32)
#include "../blackwell.cuh"
extern "C" __global__ void kernel(u32* out) {
    __shared__ Response responses[2];
    __shared__ u64 full[2];
    if (threadIdx.x == 0) init(full[0], 1), init(full[1], 1);
    __syncthreads();
    if (threadIdx.x == 0)
        for (u32 i = 0; i < 2; ++i) expect(full[i], 16), request(responses[i], full[i]);
    u32 tile = blockIdx.x, step = 0;
    for (;; ++step) {
        out[tile * blockDim.x + threadIdx.x] += 1;
        u32 slot = step % 2;
        wait(full[slot], step / 2 % 2);
        if (!taken(responses[slot], tile)) break;
        fence_async_shared();
        __syncthreads();
        if (threadIdx.x == 0) expect(full[slot], 16), request(responses[slot], full[slot]);
    }
    u32 other = (step + 1) % 2;
    wait(full[other], (step + 1) / 2 % 2);
    if (taken(responses[other], tile)) out[tile * blockDim.x + threadIdx.x] += 1;
}
