// Every lane of both warps gives the tile back for itself; the first lane of one of them waits for all and refills. That orders lanes of
// one warp, too: those that have arrived. In the racy twin one lane of the refilling warp does not: a
// warning, as it is of two lanes of one warp.
// launch: grid=1 block=64 arch=sm_90
// arg: out f32[192]=zeros
// arg: x f32[192]=random
// expect: data-race WAR @load @read severity=warning
// result: out = x.reshape(3, 64)[:, ::-1].reshape(-1)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(float* out, const float* x) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full, empty;
    const u32 t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1);
#ifdef RACY
        INIT(&empty, 63);
#else
        INIT(&empty, 64);
#endif
    }
    __syncthreads();
    for (u32 k = 0; k < 3; ++k) {
        if (t == 0) {
            if (k) WAIT(&empty, (k - 1) & 1);
            ARRIVE_EXPECT(&full, 256);
            BULK_LOAD(tile, x + 64 * k, 256, &full);  /*@load*/
        }
        WAIT(&full, k & 1);
        out[k * 64 + t] = tile[63 - t];  /*@read*/
#ifdef RACY
        if (t == 9) continue;
#endif
        ARRIVE(&empty);
    }
}
