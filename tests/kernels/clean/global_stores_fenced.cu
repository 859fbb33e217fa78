// Legal uses of global memory that the CTA has stored to and then loads in bulk: fenced by the writers, by the issuer after the barrier, by a third
// warp between two barriers; with a full fence that stands there for shared memory; what lies beside the bytes that are loaded is stored
// with no fence; and the bytes themselves are stored to after the load.
// launch: grid=2 block=96 arch=sm_90a
// arg: scratch f32[2,256]=zeros
// arg: out f32[2,192]=zeros
// result: out = np.tile(np.concatenate([np.arange(96) + 1, np.arange(96) + 2]), (2, 1)).astype(np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* scratch, float* out) {
    __shared__ alignas(128) float tile[192];
    __shared__ u64 full;
    u32 t = threadIdx.x;
    scratch += 256 * blockIdx.x;
    if (t == 0) init(full, 1);
    scratch[t] = t + 1;
    if (t < 32) fence_async_global();
    else if (t < 64) fence_async();
    __syncthreads();
    if (t < 32) fence_async_global();
    scratch[192 + t % 64] = 5.0f;
    __syncthreads();
    if (t == 64) {
        fence_async();
        expect(full, 96 * 4);
        bulk_load(tile, scratch, 96 * 4, full);
    }
    wait(full, 0);
    __syncthreads();
    scratch[96 + t] = t + 2;
    scratch[t] = 0.0f;
    __syncthreads();
    if (t == 0) {
        fence_async_global();
        expect(full, 96 * 4);
        bulk_load(tile + 96, scratch + 96, 96 * 4, full);
    }
    wait(full, 1);
    out[192 * blockIdx.x + t] = tile[t];
    out[192 * blockIdx.x + 96 + t] = tile[96 + t];
}
