// All-reduce by multimem.ld_reduce, twice in the same buffers: one load sums the values of all ranks.
#include "multicast.cuh"
extern "C" __global__ void kernel(float *mine, float *many, u32 *own, u32 *counters, float *out, int rank) {
    u32 t = threadIdx.x, met = 0;
    for (u32 round = 1; round <= 2; ++round) {
        mine[t] = rank + round;
#ifndef NO_START
        meet(own, counters, ++met);
#endif
        out[(round - 1) * N + t] = sum_of_all(many + t);
#ifndef NO_END
        meet(own, counters, ++met);
#endif
    }
}
