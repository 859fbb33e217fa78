// Rounds behind signals that are taken back: a sender waits until a slot is 0 and sets it, the receiver waits until it is 1 and clears it.
#include "ranks.cuh"
__device__ void meet(u32 **signals, int rank) {
    __syncthreads();
    if (threadIdx.x < RANKS) {
        u32 *there = signals[threadIdx.x] + rank, *here = signals[rank] + threadIdx.x;
#ifdef NOT_RESET
        put(there, 1);
        while (get(here) != 1) {}
#else
        while (swap(there, 0, 1) != 0) {}
        while (swap(here, 1, 0) != 1) {}
#endif
    }
    __syncthreads();
}
extern "C" __global__ void kernel(PEERS(float, data), PEERS(u32, signal), float *out, int rank) {
    LIST(float, data);
    LIST(u32, signal);
    u32 t = threadIdx.x;
#ifdef RESET_EARLY
    if (t < RANKS) signal[rank][t] = 0;
#endif
    for (int round = 0; round < 2; ++round) {
        data[rank][round * N + t] = rank + 1;
        meet(signal, rank);
        float sum = 0;
        for (int peer = 0; peer < RANKS; ++peer) sum += data[peer][round * N + t];
        out[round * N + t] = sum;
    }
}
