// As mbarrier_lanes_release.cu, with stores by the lane that refills; in the racy twin only a lane of its own warp has not arrived.
// launch: grid=1 block=64 arch=sm_90
// arg: out f32[192]=zeros
// arg: x f32[192]=random
// expect: data-race WAR @store @read severity=error
// result: out = x.reshape(3, 64)[:, ::-1].reshape(-1)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(float* out, const float* x) {
    __shared__ float tile[64];
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
            for (u32 i = 0; i < 64; ++i) tile[i] = x[k * 64 + i];  /*@store*/
            ARRIVE(&full);
        }
        WAIT(&full, k & 1);
        out[k * 64 + t] = tile[63 - t];  /*@read*/
#ifdef RACY
        if (t == 9) continue;
#endif
        ARRIVE(&empty);
    }
}
