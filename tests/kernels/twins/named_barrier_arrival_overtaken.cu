// What a warp does and learns behind a bar.arrive is not published by it, however late the waiting warp comes: not even where each warp is one thread.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: data-race RAW @write @store severity=error
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[32];
    __shared__ u64 own;
    int t = threadIdx.x;
    if (t < 32) tile[t] = 0.0f;
    if (t == 0) init(own, 32);
    fence_async_shared();
    __syncthreads();
    if (t < 32) {
#ifdef RACY
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        tile[t] = x[t];  /*@write*/
#else
        tile[t] = x[t];
        fence_async_shared();
        asm volatile("bar.arrive 1, 64;" ::: "memory");
#endif
        arrive(own);
        wait(own, 0);
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        if (t == 32) {
            bulk_store(out, tile, sizeof tile);  /*@store*/
            bulk_commit();
            bulk_wait<0>();
        }
    }
}
