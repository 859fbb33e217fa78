// Polls that end before the phase is over, and are legal: they trap, somebody looks at the result behind them, or waits in another way (R-M14).
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[3,64]=zeros
// result: out = np.stack([x[::-1]] * 3)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 all[3];
    __shared__ float tile[3][64];
    u32 ok = 0, t = threadIdx.x, n = 0;
    if (t == 0) for (int i = 0; i < 3; i++) INIT(&all[i], 64);
    __syncthreads();
    for (int i = 0; i < 3; i++) { tile[i][t] = x[t]; ARRIVE(&all[i]); }
    while (!ok) { ATTEMPT(ok, "try_wait.parity", &all[0], "r", 0u); if (++n > 1000000) __trap(); }
    out[t] = tile[0][63 - t];
    n = 0;
    do { ATTEMPT(ok, "try_wait.parity", &all[1], "r", 0u); } while (!ok && ++n < 1000000);
    if (ok) out[64 + t] = tile[1][63 - t];
    for (n = 0; n < 100; n++) { ATTEMPT(ok, "test_wait.parity", &all[2], "r", 0u); if (ok) break; }
    WAIT(&all[2], 0);
    out[128 + t] = tile[2][63 - t];
}
