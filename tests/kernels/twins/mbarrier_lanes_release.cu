// Every lane of both warps gives the tile back for itself; the first lane of one of them waits for all and refills. That orders lanes of
// one warp, too, if each arrives after its read: in the racy twin they arrive before it.
// launch: grid=1 block=64 arch=sm_90
// arg: out f32[192]=zeros
// arg: x f32[192]=random
// expect: missing-wait|data-race WAR @load @read severity=error
// result: out = x.reshape(3, 64)[:, ::-1].reshape(-1)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(float* out, const float* x) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full, empty;
    const u32 t = threadIdx.x;
    if (t == 0) { INIT(&full, 1); INIT(&empty, 64); }
    __syncthreads();
    for (u32 k = 0; k < 3; ++k) {
        if (t == 0) {
            if (k) WAIT(&empty, (k - 1) & 1);
            ARRIVE_EXPECT(&full, 256);
            BULK_LOAD(tile, x + 64 * k, 256, &full);  /*@load*/
        }
        WAIT(&full, k & 1);
#ifdef RACY
        ARRIVE(&empty);
#endif
        out[k * 64 + t] = tile[63 - t];  /*@read*/
#ifndef RACY
        ARRIVE(&empty);
#endif
    }
}
