// Rounds behind signals that are taken back: a sender waits until a slot is 0 and sets it, the receiver waits until it is 1 and clears it.
// NOT_RESET: what was set in the round before ends the wait of the next one.
#include "ranks.cuh"
__device__ void meet(u32 **signals, int rank, int round, float *seen) {
    __syncthreads();
    if (threadIdx.x < RANKS) {
        u32 *there = signals[threadIdx.x] + rank, *here = signals[rank] + threadIdx.x;
#ifdef NOT_RESET
        put(there, round + 1);
        while (!(seen[threadIdx.x] = get(here))) {}
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
        meet(signal, rank, round, out + 2 * N);
        float sum = 0;
        for (int peer = 0; peer < RANKS; ++peer) sum += data[peer][round * N + t];
        out[round * N + t] = sum;
    }
}
