// R-B7: CTA 1 changes a tensor map, behind the issue of a copy of CTA 0 that uses it, but not behind its completion.
// What a copy does with a map that changes is undefined, and may end the launch on a chip.
// backends: cpu
// launch: grid=2 block=32 arch=sm_90a
// arg: x f32[2,8,32]=arange
// arg: out f32[2,8,32]=zeros
// arg: maps u32[32]=zeros
// arg: flag u32[1]=zeros
// expect: missing-wait WAR @load @change severity=error
// result: out = np.stack([x[0], 0 * x[0]])
#include "../tensormap.cuh"
extern "C" __global__ void kernel(const float* x, float* out, u32* maps, u32* flag) {
    __shared__ SharedMap built;
    __shared__ alignas(128) float tile[256];
    __shared__ u64 full;
    u32 t = threadIdx.x;
    const TensorMap& map = *(const TensorMap*)maps;
    if (t == 0) init(full, 1);
    built.words[t] = 0;
    __syncthreads();
    if (blockIdx.x == 0) {
        if (t == 0) describe(&built, x, 32, 8);
        __syncwarp();
        publish(maps, &built);
        acquire(maps);
        __syncwarp();
        if (t == 0) {
            expect(full, 1024);
            tensor_load(tile, map, 0, 0, full);  /*@load*/
#ifndef RACY
            wait(full, 0);
#endif
            set_flag(flag);
        }
        wait(full, 0);
        for (u32 i = t; i < 256; i += 32) out[i] = tile[i];
    } else {
        see_flag(flag);
        if (t == 0) set_address(maps, x + 256);  /*@change*/
    }
}
