// Rows of 48 bytes, each its own bulk copy of one lane, into lines of 64 bytes: 256 copies in flight at a time, three times over.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f32[768,12]=arange
// arg: out f32[256,12]=zeros
// result: out = x.reshape(3, 256, 12).sum(axis=0)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float rows[256][16];
    __shared__ u64 full;
    int t = threadIdx.x;
    float sums[24] = {};
    if (t == 0) init(full, 1);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 3; k++) {
        if (t == 0) expect(full, 256 * 48);
        for (int row = t; row < 256; row += 128) bulk_load(rows[row], x + (k * 256 + row) * 12, 48, full);
        wait(full, k % 2);
        for (int i = 0; i < 24; i++) sums[i] += rows[t + i / 12 * 128][i % 12];
        __syncthreads();
    }
    for (int i = 0; i < 24; i++) out[(t + i / 12 * 128) * 12 + i % 12] = sums[i];
}
