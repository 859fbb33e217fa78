// Rows of a matrix in global memory are prepared with ordinary stores and loaded through a tensor map. Here the fence comes before the last
// store of each thread; in the second part one thread stores and loads by itself, with the fence left out (R-PX).
// launch: grid=1 block=64 arch=sm_90a
// arg: map tma:f32[16,32]=arange,box=2x32
// arg: out f32[4,32]=zeros
// expect: missing-proxy-fence @late @load severity=error
// expect: missing-proxy-fence @own @again severity=error
// result: out = np.stack([np.arange(32), np.full(32, 7), np.arange(160, 192), np.full(32, 9)]).astype(np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map, float* out) {
    __shared__ alignas(128) float tile[128];
    __shared__ u64 full;
    u32 t = threadIdx.x;
    float* rows = (float*)map.words[0];
    if (t == 0) init(full, 1);
    if (t < 32) {
        rows[t] = t;
#ifdef RACY
        fence_async_global();
#endif
        rows[32 + t] = 7.0f; /*@late*/
#ifndef RACY
        fence_async_global();
#endif
    }
    __syncthreads();
    if (t == 32) {
        expect(full, 512);
        tensor_load(tile, map, 0, 0, full); /*@load*/
        for (u32 i = 0; i < 32; i++) rows[6 * 32 + i] = 9.0f; /*@own*/
#ifndef RACY
        fence_async_global();
#endif
        tensor_load(tile + 64, map, 0, 5, full); /*@again*/
    }
    wait(full, 0);
    out[t] = tile[t];
    out[64 + t] = tile[64 + t];
}
