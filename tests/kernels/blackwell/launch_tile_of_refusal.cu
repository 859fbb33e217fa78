// The id in a response leads to an address without a test for a refusal (R-C5): tile * 64 | lane, as compilers add where no bit meets.
// launch: grid=6 block=64 arch=sm_100a
// arg: out u32[6,64]=zeros
// arg: last u32[2,64]=zeros
// expect: clc-misuse @id @use severity=error
// allow: global-race
// result: out = np.ones((6, 64), np.uint32)
#include "../blackwell.cuh"
extern "C" __global__ void __launch_bounds__(64) kernel(u32* out, u32* last) {
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
        bool more = taken(response, tile);
#ifdef RACY
        u32 next = first_of(response) & 1;             /*@id*/
        last[next * 64 | threadIdx.x] = 1;  /*@use*/
#endif
        fence_async_shared();
        __syncthreads();
        if (!more) break;
    }
}
