// st.bulk clears a tile while a bulk load into it is in flight.
// launch: grid=1 block=64 arch=sm_100a
// arg: x u32[64]=arange
// arg: out u32[64]=zeros
// backends: cpu
// expect: missing-wait WAW @load @fill severity=error
// result: out = 0 * x
#include "../hopper.cuh"
#define ZERO(tile) asm volatile("st.bulk.weak.shared::cta [%0], 256, 0;" ::"r"(shared(tile)) : "memory")
extern "C" __global__ void kernel(const u32* x, u32* out) {
    __shared__ alignas(128) u32 tile[64];
    __shared__ u64 full;
    u32 t = threadIdx.x;
    if (t == 0) init(full, 1);
    __syncthreads();
    if (t == 0) {
        expect(full, 256);
        bulk_load(tile, x, 256, full);  /*@load*/
#ifndef RACY
        wait(full, 0);
#endif
        ZERO(tile);  /*@fill*/
    }
    wait(full, 0);
    __syncthreads();
    out[t] = tile[t];
}
