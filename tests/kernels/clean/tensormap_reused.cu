// Legal ways of a map in global memory: changed again once everybody has waited for the copies that used it, published by one warp and acquired by
// another one, acquired by one lane and used by another lane after a warp barrier; stores beside the map while a copy reads it.
// launch: grid=2 block=64 arch=sm_90a
// arg: x f32[4,8,32]=arange
// arg: out f32[2,4,8,32]=zeros
// arg: maps u32[2,96]=zeros
// result: out = np.stack([x, x])
#include "../tensormap.cuh"
extern "C" __global__ void kernel(const float* x, float* out, u32* maps) {
    __shared__ SharedMap built;
    __shared__ alignas(128) float tile[256];
    __shared__ u64 full;
    u32 t = threadIdx.x;
    maps += 96 * blockIdx.x;
    out += 1024 * blockIdx.x;
    if (t == 0) init(full, 1);
    if (t < 32) {
        built.words[t] = 0;
        __syncwarp();
        if (t == 0) describe(&built, x, 32, 8);
    }
    __syncthreads();
#pragma unroll 1
    for (u32 k = 0; k < 4; k++) {
        if (t < 32) {
            const float* from = x + 256 * k;
            if (t == 0) REPLACE("global_address", "b64", "l", &built, __cvta_generic_to_global(from));
            __syncwarp();
            publish(maps, &built);
        }
        __syncthreads();
        if (t == 33) acquire(maps);
        if (t >= 32) __syncwarp();
        if (t == 32) {
            fence_async();
            expect(full, 1024);
            tensor_load(tile, *(const TensorMap*)maps, 0, 0, full);
            maps[32] = k;
        }
        wait(full, k % 2);
        for (u32 i = t; i < 256; i += 64) out[256 * k + i] = tile[i];
        __syncthreads();
    }
}
