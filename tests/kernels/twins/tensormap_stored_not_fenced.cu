// A warp copies a map from the parameters to global memory with ordinary stores, and changes another one there with tensormap.replace. The
// first is used with no acquire fence, the second with no release fence after the change (ISA "fence.proxy.tensormap").
// launch: grid=1 block=32 arch=sm_90a
// arg: x f32[8,32]=arange
// arg: given tma:f32[8,32]=zeros,box=8x32
// arg: out f32[8,32]=zeros
// arg: maps u32[64]=zeros
// expect: missing-proxy-fence @copy @load severity=error
// expect: missing-proxy-fence @replace @store severity=error
// result: out = x
#include "../tensormap.cuh"
extern "C" __global__ void kernel(const float* x, const __grid_constant__ TensorMap given, float* out, u32* maps) {
    __shared__ alignas(128) float tile[256];
    __shared__ u64 full;
    u32 t = threadIdx.x, *other = maps + 32;
    if (t == 0) init(full, 1);
    float* source = (float*)given.words[0];
    for (u32 i = t; i < 256; i += 32) source[i] = x[i];
    fence_async();
    maps[t] = ((const u32*)given.words)[t]; /*@copy*/
    other[t] = ((const u32*)given.words)[t];
    release();
    __syncwarp();
    if (t == 0) {
        set_address(other, out); /*@replace*/
#ifndef RACY
        release();
        acquire(maps);
#endif
        expect(full, 1024);
        tensor_load(tile, *(const TensorMap*)maps, 0, 0, full); /*@load*/
        wait(full, 0);
        acquire(other);
        tensor_store(*(const TensorMap*)other, 0, 0, tile); /*@store*/
        bulk_commit();
        bulk_wait<0>();
    }
}
