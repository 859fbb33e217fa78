// Ring all-gather: in each step a rank hands the part that came last to the next rank, and tells it by a flag of the step.
#include "ranks.cuh"
extern "C" __global__ void kernel(PEERS(float, data), PEERS(u32, signal), float *out, int rank) {
    LIST(float, data);
    LIST(u32, signal);
    u32 t = threadIdx.x;
    int next = (rank + 1) % RANKS;
    data[rank][rank * N + t] = rank + 1;
    for (int step = 0; step < RANKS - 1; ++step) {
        int part = (rank - step + RANKS) % RANKS;
        data[next][part * N + t] = data[rank][part * N + t];
        __syncthreads();
#ifdef WEAK_FLAG
        if (t == 0) put_relaxed(signal[next] + step, 1);
#else
        if (t == 0) put(signal[next] + step, 1);
#endif
#ifndef NO_WAIT
        if (t == 0) while (get(signal[rank] + step) != 1) {}
#endif
        __syncthreads();
    }
    for (int part = 0; part < RANKS; ++part) out[part * N + t] = data[rank][part * N + t];
}
