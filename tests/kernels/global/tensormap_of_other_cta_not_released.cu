// CTA 0 stores a tensor map and sets a flag, with no release fence for tensor maps; the acquire of CTA 1 is in vain.
// launch: grid=2 block=32 arch=sm_90a
// arg: x f32[2,8,32]=arange
// arg: out f32[2,8,32]=zeros
// arg: maps u32[32]=zeros
// arg: flag u32[1]=zeros
// backends: cpu
// expect: missing-proxy-fence RAW @publish @load severity=error
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
        maps[t] = built.words[t];  /*@publish*/
#ifndef RACY
        release();
#endif
        __syncwarp();
        if (t == 0) set_flag(flag);
    } else {
        see_flag(flag);
        acquire(maps);
        __syncwarp();
        if (t == 0) {
            expect(full, 1024);
            tensor_load(tile, map, 0, 0, full);  /*@load*/
        }
        wait(full, 0);
        for (u32 i = t; i < 256; i += 32) out[i] = tile[i];
    }
}
