// Two warps store in turns from one tile, as the consumers of a ping-pong kernel do: each warp's first lane waits until its store has read
// the tile, all lanes arrive, and the turn comes back by way of the other warp. In the racy twin the lane arrives before it has waited.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[192]=random
// arg: out f32[192]=zeros
// expect: missing-wait WAR @store @write severity=error
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[32];
    __shared__ u64 turn[2];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x < 2) init(turn[threadIdx.x], 32);
    __syncthreads();
    for (u32 k = warp; k < 6; k += 2) {
        if (k) wait(turn[warp], (k - 1) / 2 & 1);
        tile[lane] = x[32 * k + lane];  /*@write*/
        fence_async_shared();
        __syncwarp();
        if (lane == 0) {
            bulk_store(out + 32 * k, tile, sizeof tile);  /*@store*/
            bulk_commit();
#ifndef RACY
            bulk_wait<0>();
#endif
        }
        arrive(turn[warp ^ 1]);
#ifdef RACY
        if (lane == 0) bulk_wait<0>();
#endif
    }
}
