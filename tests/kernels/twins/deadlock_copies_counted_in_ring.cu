// A ring of two stages: the copies of the producer arrive without .noinc, so no stage becomes full (R-M11). The producer then waits for a free
// stage, and that wait follows.
// Not run on a chip: it would wait there.
// backends: cpu
// launch: grid=1 block=96 arch=sm_90
// arg: x f32[512]=arange
// arg: out f32[256]=zeros
// expect: deadlock severity=error
// result: out = x.reshape(4, 128)[:, 63::-1].ravel()
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full[2], empty[2];
    __shared__ __align__(16) float tile[2][128];
    int t = threadIdx.x;
    if (t == 0)
        for (int s = 0; s < 2; s++) {
            INIT(&full[s], 32);
            INIT(&empty[s], 64);
        }
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        int s = k & 1;
        if (t < 32) {
            WAIT(&empty[s], (k / 2 & 1) ^ 1);
            COPY16(&tile[s][4 * t], &x[128 * k + 4 * t]);
#ifdef RACY
            COPIES_ARRIVE(&full[s]);
#else
            COPIES_ARRIVE_NOINC(&full[s]);
#endif
        } else {
            WAIT(&full[s], k / 2 & 1);
            out[64 * k + t - 32] = tile[s][95 - t];
            ARRIVE(&empty[s]);
        }
    }
}
