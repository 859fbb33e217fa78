// A CTA prepares data in global memory with ordinary stores and, after a barrier, loads it by bulk copy: the copy reads through the async
// proxy and needs a proxy fence that covers global memory; one for shared memory does not (R-PX).
// launch: grid=2 block=64 arch=sm_90a
// arg: scratch f32[2,64]=zeros
// arg: out f32[2,64]=zeros
// expect: missing-proxy-fence @write @load severity=error
// result: out = np.tile(np.arange(64) + 1, (2, 1)).astype(np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* scratch, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    u32 t = threadIdx.x;
    scratch += 64 * blockIdx.x;
    if (t == 0) init(full, 1);
    scratch[t] = t + 1; /*@write*/
#ifdef RACY
    fence_async_shared();
#else
    fence_async();
#endif
    __syncthreads();
    if (t == 32) {
        expect(full, sizeof(tile));
        bulk_load(tile, scratch, sizeof(tile), full); /*@load*/
    }
    wait(full, 0);
    out[64 * blockIdx.x + t] = tile[t];
}
