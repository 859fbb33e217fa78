// The source in global memory of a load is overwritten while the load is in flight: of a bulk load by its own thread, and of a tensor load by other
// threads after a barrier that no wait precedes (SEMANTICS 4.2).
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: map tma:f32[8,32]=arange,box=2x32
// arg: out f32[128]=zeros
// expect: missing-wait @load @own severity=error
// expect: missing-wait @box @others severity=error
// result: out = np.concatenate([np.arange(64), np.arange(128, 192)]).astype(np.float32)
// result: x = np.zeros(64, np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* x, const __grid_constant__ TensorMap map, float* out) {
    __shared__ alignas(128) float tile[128];
    __shared__ u64 full[2];
    u32 t = threadIdx.x;
    float* rows = (float*)map.words[0];
    if (t == 0) {
        init(full[0], 1);
        init(full[1], 1);
        expect(full[0], 256);
        bulk_load(tile, x, 256, full[0]); /*@load*/
#ifndef RACY
        wait(full[0], 0);
#endif
        for (u32 i = 0; i < 64; i++) x[i] = 0.0f; /*@own*/
        expect(full[1], 256);
        tensor_load(tile + 64, map, 0, 4, full[1]); /*@box*/
#ifndef RACY
        wait(full[1], 0);
#endif
    }
    __syncthreads();
    if (t < 32) rows[5 * 32 + t] = 0.0f; /*@others*/
    wait(full[0], 0);
    wait(full[1], 0);
    out[t] = tile[t];
    out[64 + t] = tile[64 + t];
}
