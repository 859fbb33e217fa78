// A map in global memory is set to another matrix while a copy that uses it is in flight: a load that nobody has waited for, and a store whose
// group has not been waited for (R-B7).
// launch: grid=1 block=32 arch=sm_90a
// arg: x f32[2,8,32]=arange
// arg: out f32[2,8,32]=zeros
// arg: maps u32[2,32]=zeros
// expect: missing-wait @load @load_from severity=error
// expect: missing-wait @store @store_to severity=error
// result: out = x
#include "../tensormap.cuh"
extern "C" __global__ void kernel(const float* x, float* out, u32* maps) {
    __shared__ SharedMap built[2];
    __shared__ alignas(128) float tile[2][256];
    __shared__ u64 full[2];
    u32 t = threadIdx.x;
    if (t == 0) { init(full[0], 1); init(full[1], 1); }
    const TensorMap* map = (const TensorMap*)maps;
    for (u32 i = 0; i < 2; i++) {
        built[i].words[t] = 0;
        __syncwarp();
        if (t == 0) describe(&built[i], i ? out : x, 32, 8);
        publish(maps + 32 * i, &built[i]);
        acquire(maps + 32 * i);
    }
    __syncwarp();
    if (t == 0) {
        expect(full[0], 1024);
        tensor_load(tile[0], map[0], 0, 0, full[0]); /*@load*/
#ifndef RACY
        wait(full[0], 0);
#endif
        set_address(maps, x + 256); /*@load_from*/
        release();
        acquire(maps);
        expect(full[1], 1024);
        tensor_load(tile[1], map[0], 0, 0, full[1]);
        wait(full[0], 0);
        wait(full[1], 0);
        tensor_store(map[1], 0, 0, tile[0]); /*@store*/
        bulk_commit();
#ifndef RACY
        bulk_wait_read<0>();
#endif
    }
    __syncwarp();
    const float* next = out + 256;
    if (t == 0) REPLACE("global_address", "b64", "l", &built[1], __cvta_generic_to_global(next));
    __syncwarp();
    publish(maps + 32, &built[1]); /*@store_to*/
    acquire(maps + 32);
    __syncwarp();
    if (t == 0) {
        tensor_store(map[1], 0, 0, tile[1]);
        bulk_commit();
        bulk_wait<0>();
    }
}
