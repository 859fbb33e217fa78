// Legal stores near the sources of bulk and tensor loads in flight: beside the bytes, to other rows and columns of the tensor; and to the sources
// themselves once a load is complete for the storing thread, which has waited, comes after one that has, or is the consumer that was told by
// an mbarrier; in a ring whose stages are refilled with what the CTA itself has stored meanwhile.
// launch: grid=2 block=64 arch=sm_90a
// arg: x f32[2,80,32]=arange
// arg: map tma:f32[8,64]=arange,box=2x32
// arg: out f32[2,2560]=zeros
// result: out = np.stack([np.arange(2560) + np.repeat(np.arange(80) // 8, 32), np.arange(2560) + 2560 + np.repeat(np.arange(80) // 8, 32)]).astype(np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* x, const __grid_constant__ TensorMap map, float* out) {
    __shared__ alignas(128) float tile[2][256];
    __shared__ alignas(128) float box[64];
    __shared__ u64 full[3];
    u32 t = threadIdx.x;
    float* rows = (float*)map.words[0];
    x += 2560 * blockIdx.x;
    out += 2560 * blockIdx.x;
    if (t < 3) init(full[t], 1);
    __syncthreads();
    if (t == 0) {
        if (blockIdx.x == 0) {
            expect(full[2], 256);
            tensor_load(box, map, 32, 2, full[2]);
        }
        expect(full[0], 1024);
        bulk_load(tile[0], x, 1024, full[0]);
    }
    __syncthreads();
    if (blockIdx.x == 0 && t < 32) {
        rows[2 * 64 + t] = 0.0f;
        rows[1 * 64 + 32 + t] = 0.0f;
        rows[4 * 64 + 32 + t] = 0.0f;
    }
#pragma unroll 1
    for (u32 k = 0; k < 10; k++) {
        if (t == 0 && k < 9) {
            fence_async();
            expect(full[(k + 1) % 2], 1024);
            bulk_load(tile[(k + 1) % 2], x + 256 * (k + 1), 1024, full[(k + 1) % 2]);
        }
        wait(full[k % 2], k / 2 % 2);
        for (u32 i = t; i < 256; i += 64) {
            out[256 * k + i] = tile[k % 2][i] + k;
            x[256 * k + i] = 0.0f;
        }
        __syncthreads();
    }
    if (blockIdx.x == 0 && t == 32) wait(full[2], 0);
    __syncthreads();
    if (blockIdx.x == 0) rows[(2 + t / 32) * 64 + 32 + t % 32] = 0.0f;
}
