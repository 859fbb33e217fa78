// Other threads use what a bulk store has written, after a barrier that follows wait_group.read: they read one half of it, and store to
// the other one (R-B3).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// arg: copy f32[32]=zeros
// expect: missing-wait @issue @load severity=error
// expect: missing-wait @issue @store severity=error
// result: copy = np.arange(32, 64).astype(np.float32)
// result: out = np.concatenate([np.zeros(32), np.arange(32, 64)]).astype(np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out, float* copy) {
    __shared__ alignas(128) float tile[64];
    u32 t = threadIdx.x;
    tile[t] = x[t];
    fence_async_shared();
    __syncthreads();
    if (t == 32) {
        bulk_store(out, tile, sizeof(tile)); /*@issue*/
        bulk_commit();
#ifdef RACY
        bulk_wait_read<0>();
#else
        bulk_wait<0>();
#endif
    }
    __syncthreads();
    if (t < 32) copy[t] = out[32 + t]; /*@load*/
    else out[t - 32] = 0.0f; /*@store*/
}
