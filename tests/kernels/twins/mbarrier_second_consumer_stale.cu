// R-M3: a ring of two stages with two consumer warps. The second one asks for parity 0 in each round, so it comes round again at once, and arrives
// twice in a phase of `empty`, or reads before the producer writes. The count is right.
//
// launch: grid=1 block=96 arch=sm_90a
// arg:    x f32[8,32]=random
// arg:    out f32[2,32]=zeros
// expect: barrier-misuse|data-race severity=error
// allow:  barrier-misuse severity=error
// allow:  deadlock severity=error
// allow:  data-race severity=error
// result: out = np.tile(x[:, ::-1].sum(0), (2, 1))
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float stage[2][32];
    __shared__ u64 full[2], empty[2];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        for (int i = 0; i < 2; i++) {
            INIT(&full[i], 32);
            INIT(&empty[i], 64);
        }
    __syncthreads();
    if (warp == 0) {
#pragma unroll 1
        for (int k = 0; k < 8; k++) {
            WAIT(&empty[k & 1], (k >> 1 & 1) ^ 1);
            stage[k & 1][lane] = x[k * 32 + lane];
            ARRIVE(&full[k & 1]);
        }
    } else {
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < 8; k++) {
#ifdef RACY
            WAIT(&full[k & 1], warp == 2 ? 0 : k >> 1 & 1);
#else
            WAIT(&full[k & 1], k >> 1 & 1);
#endif
            sum += stage[k & 1][31 - lane];
            ARRIVE(&empty[k & 1]);
        }
        out[(warp - 1) * 32 + lane] = sum;
    }
}
