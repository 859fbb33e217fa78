// Forty barriers in dynamic shared memory, one for each tile, and several copies on each.
// launch: grid=1 block=64 smem=20800 arch=sm_90
// arg: x f32[5120]=arange
// arg: out f32[64]=zeros
// result: out = x.reshape(40, 2, 64)[:, :, ::-1].sum(axis=(0, 1))
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    extern __shared__ __align__(128) unsigned char memory[];
    float(*tiles)[2][64] = (float(*)[2][64])memory;
    u64* full = (u64*)(memory + 40 * sizeof *tiles);
    int t = threadIdx.x;
    if (t < 40) INIT(&full[t], 1);
    __syncthreads();
    if (t == 0) {
#pragma unroll 1
        for (int k = 0; k < 40; k++) {
            ARRIVE_EXPECT(&full[k], sizeof *tiles);
            for (int half = 0; half < 2; half++) BULK_LOAD(tiles[k][half], x + 128 * k + 64 * half, sizeof tiles[0][0], &full[k]);
        }
    }
    float sum = 0;
#pragma unroll 1
    for (int k = 39; k >= 0; k--) {
        WAIT(&full[k], 0);
        sum += tiles[k][0][63 - t] + tiles[k][1][63 - t];
    }
    out[t] = sum;
}
