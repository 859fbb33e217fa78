// Dispatch of tokens: each rank sends some to each peer, and how many there are, plus one.
#include "ranks.cuh"
extern "C" __global__ void kernel(PEERS(float, data), PEERS(u32, signal), float *out, int rank) {
    LIST(float, data);
    LIST(u32, signal);
    u32 t = threadIdx.x;
    for (int peer = 0; peer < RANKS; ++peer) {
        u32 count = (rank + peer) % 3 * 8;
#ifdef COUNTS_FIRST
        if (t == 0) put(signal[peer] + rank, count + 1);
#endif
        if (t < count) data[peer][rank * N + t] = rank + 1;
#ifndef COUNTS_FIRST
        __syncthreads();
        if (t == 0) put(signal[peer] + rank, count + 1);
#endif
    }
    __shared__ u32 counts[RANKS];
    if (t < RANKS) {
        u32 count;
        while (!(count = get(signal[rank] + t))) {}
        counts[t] = count - 1;
    }
    __syncthreads();
    for (int peer = 0; peer < RANKS; ++peer)
        if (t < counts[peer]) out[peer * N + t] = data[rank][peer * N + t];
}
