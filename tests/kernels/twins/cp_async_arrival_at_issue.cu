// A warp gathers rows by cp.async into a ring. Under RACY its lanes arrive when they have issued the copies, not when these are complete (R-CP1).
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[8,128]=arange
// arg: out f32[2,32]=zeros
// arg: rounds i32=4
// expect: missing-wait RAW @copy @read severity=error
// allow: missing-wait WAW @copy @copy severity=error
// result: out = np.stack([x[[(3 * i + r) % 8 for i in range(4)]][:, 127::-4].sum(axis=0) for r in (0, 1)])
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out, int rounds) {
    __shared__ __align__(16) float ring[2][128];
    __shared__ u64 full[2], empty[2];
    u32 t = threadIdx.x, lane = t % 32;
    if (t == 0)
        for (int s = 0; s < 2; ++s) {
            INIT(&full[s], 32);
            INIT(&empty[s], 32);
        }
    __syncthreads();
    if (t < 32) {
        for (int i = 0; i < rounds; ++i) {
            int s = i % 2, parity = i / 2 & 1;
            WAIT(&empty[s], parity ^ 1);
            COPY16(&ring[s][4 * lane], &x[(3 * i + blockIdx.x) % 8 * 128 + 4 * lane]);  /*@copy*/
#ifdef RACY
            ARRIVE(&full[s]);
#else
            COPIES_ARRIVE_NOINC(&full[s]);
#endif
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
    } else {
        float sum = 0;
        for (int i = 0; i < rounds; ++i) {
            int s = i % 2, parity = i / 2 & 1;
            WAIT(&full[s], parity);
            sum += ring[s][127 - 4 * lane];  /*@read*/
            ARRIVE(&empty[s]);
        }
        out[32 * blockIdx.x + lane] = sum;
    }
}
