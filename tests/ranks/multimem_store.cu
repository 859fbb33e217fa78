// All-gather by multimem.st: each rank puts its part into the memory of all, and counts in the counters of all.
#include "multicast.cuh"
extern "C" __global__ void kernel(float *mine, float *many, u32 *own, u32 *counters, float *out, int rank) {
    u32 t = threadIdx.x;
#ifdef SAME_SLOT
    put_in_all(many + t, rank);
#else
    put_in_all(many + rank * N + t, rank);
#endif
    __syncthreads();
    if (t == 0) {
#ifdef RELAXED
        count_relaxed(counters);
#else
        count_in_all(counters);
#endif
#ifndef NO_WAIT
        while (get(own) < RANKS) {}
#endif
    }
    __syncthreads();
    for (int peer = 0; peer < RANKS; ++peer) out[peer * N + t] = mine[peer * N + t];
}
