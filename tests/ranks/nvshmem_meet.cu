// Rounds between barriers of NVSHMEM: each rank puts values into the next one, and reads its own behind the barrier. BARRIER: how it is called.
#include <nvshmem.h>
extern "C" __global__ void kernel(float *data, float *out, int rank) {
    int next = (rank + 1) % nvshmem_n_pes();
    unsigned t = threadIdx.x, n = blockDim.x;
    for (unsigned round = 1; round <= 2; ++round) {
        nvshmemx_float_put_block(data, out + 2 * n, n, next);
#ifndef NO_MIDDLE
        BARRIER;
#endif
        out[(round - 1) * n + t] = data[t] + round;
#ifndef NO_END
        BARRIER;
#endif
    }
}
