// A map is built in shared memory and published to global memory by one warp; another one uses it after a barrier, with no acquire fence
// for it: the copy reads its map through another proxy (ISA "fence.proxy.tensormap").
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[8,32]=arange
// arg: out f32[8,32]=zeros
// arg: maps u32[32]=zeros
// expect: missing-proxy-fence @publish @load severity=error
// result: out = x
#include "../tensormap.cuh"
extern "C" __global__ void kernel(const float* x, float* out, u32* maps) {
    __shared__ SharedMap built;
    __shared__ alignas(128) float tile[256];
    __shared__ u64 full;
    u32 t = threadIdx.x;
    if (t == 0) init(full, 1);
    if (t < 32) {
        built.words[t] = 0;
        __syncwarp();
        if (t == 0) describe(&built, x, 32, 8);
        publish(maps, &built); /*@publish*/
    }
    __syncthreads();
    if (t == 32) {
#ifndef RACY
        acquire(maps);
#endif
        expect(full, 1024);
        tensor_load(tile, *(const TensorMap*)maps, 0, 0, full); /*@load*/
    }
    wait(full, 0);
    for (u32 i = t; i < 256; i += 64) out[i] = tile[i];
}
