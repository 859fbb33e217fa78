// Threads look a number of times whether the phase is over, and go on in any case. Where a look has succeeded, by luck, it orders nothing
// all the same (R-M14): the thread would read if none had. A fence in such a loop changes nothing of that.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[3,64]=zeros
// expect: data-race RAW @write @read severity=error
// expect: data-race RAW @write @later severity=error
// expect: data-race RAW @write @last severity=error
// allow: uninitialized-read @read
// allow: uninitialized-read @later
// allow: uninitialized-read @last
// result: out = np.stack([x[::-1]] * 3)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 all;
    __shared__ float tile[64];
    u32 ok = 0, t = threadIdx.x, n = 0;
    if (t == 0) INIT(&all, 64);
    __syncthreads();
    tile[t] = x[t];  /*@write*/
    ARRIVE(&all);
#ifdef RACY
    for (int i = 0; i < 1000; i++) { ATTEMPT(ok, "test_wait.parity", &all, "r", 0u); if (ok) break; }
    out[t] = tile[63 - t];  /*@read*/
    do { ATTEMPT(ok, "try_wait.parity", &all, "r", 0u); FENCE(); } while (!ok && ++n < 1000);
    out[64 + t] = tile[63 - t];  /*@later*/
    long long began = clock64();
    for (ok = 0; !ok && clock64() - began < 1000000;) ATTEMPT(ok, "try_wait.parity", &all, "r", 0u);
    out[128 + t] = tile[63 - t];  /*@last*/
#else
    while (!ok) { ATTEMPT(ok, "try_wait.parity", &all, "r", 0u); if (++n > 1000000) __trap(); }
    out[t] = tile[63 - t];
    out[64 + t] = tile[63 - t];
    out[128 + t] = tile[63 - t];
#endif
}
