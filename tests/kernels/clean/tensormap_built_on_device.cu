// Two maps built one after the other in the same bytes, each by one lane between the lanes that clear and copy it, and used at once: a tile
// is loaded through the first and stored through the second. Compilers leave no warp barrier between the last replacement and the copy, nor
// between the copy and the next map.
// launch: grid=1 block=32 arch=sm_90a
// arg: x f32[8,32]=arange
// arg: out f32[8,32]=zeros
// arg: maps u32[2,32]=zeros
// result: out = x
#include "../tensormap.cuh"
extern "C" __global__ void kernel(const float* x, float* out, u32* maps) {
    __shared__ SharedMap built;
    __shared__ alignas(128) float tile[256];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) init(full, 1);
    for (int i = 0; i < 2; ++i) {
        built.words[t] = 0;
        __syncwarp();
        if (t == 0) describe(&built, i ? out : x, 32, 8);
        publish(maps + 32 * i, &built);
        acquire(maps + 32 * i);
    }
    const TensorMap* map = (const TensorMap*)maps;
    __syncwarp();
    if (t == 0) {
        fence_async();
        expect(full, 1024);
        tensor_load(tile, map[0], 0, 0, full);
        wait(full, 0);
        tensor_store(map[1], 0, 0, tile);
        bulk_commit();
        bulk_wait<0>();
    }
}
