// What a warp does and learns between barrier.cluster.arrive and its wait is not published by the arrival: not even where each warp is one thread.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: data-race RAW @write @store severity=error
// result: out = x
#include "../hopper.cuh"
#include "../cluster.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[32];
    __shared__ u64 own;
    int t = threadIdx.x;
    if (t < 32) tile[t] = 0.0f;
    if (t == 0) init(own, 32);
    fence_async_shared();
    __syncthreads();
#ifndef RACY
    if (t < 32) tile[t] = x[t];
    fence_async_shared();
#endif
    CLUSTER_ARRIVE();
    if (t < 32) {
#ifdef RACY
        tile[t] = x[t];  /*@write*/
#endif
        arrive(own);
        wait(own, 0);
    }
    CLUSTER_WAIT();
    if (t == 32) {
        bulk_store(out, tile, sizeof tile);  /*@store*/
        bulk_commit();
        bulk_wait<0>();
    }
}
