// One thread brings a tile in pieces of 16, 48 and 64 bytes, 96 of them at a time; it leaves in pieces of 16 bytes, one for each thread.
// launch: grid=1 block=96 arch=sm_90a
// arg: x f32[2,1024]=arange
// arg: out f32[2,1024]=zeros
// result: out = x
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[1024];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) init(full, 1);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        if (t == 0) {
            expect(full, 4096);
            for (int i = 0; i < 32; i++) {
                float* to = tile + i * 32;
                const float* from = x + k * 1024 + i * 32;
                bulk_load(to, from, 16, full);
                bulk_load(to + 4, from + 4, 48, full);
                bulk_load(to + 16, from + 16, 64, full);
            }
        }
        wait(full, k % 2);
        for (int i = t; i < 256; i += 96) bulk_store(out + k * 1024 + i * 4, tile + i * 4, 16);
        bulk_commit();
        bulk_wait_read<0>();
        __syncthreads();
    }
    bulk_wait<0>();
}
