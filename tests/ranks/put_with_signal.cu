// Each rank puts values into the buffers of all, and a signal behind them in a slot of its own.
#include "ranks.cuh"
extern "C" __global__ void kernel(PEERS(float, data), PEERS(u32, signal), float *out, int rank) {
    LIST(float, data);
    LIST(u32, signal);
    u32 t = threadIdx.x;
#ifdef SIGNAL_FIRST
    if (t < RANKS) put(signal[t] + rank, 1);
    __syncthreads();
#endif
    for (int peer = 0; peer < RANKS; ++peer) data[peer][rank * N + t] = rank + 1;
    __syncthreads();
#ifdef RELAXED
    if (t < RANKS) put_relaxed(signal[t] + rank, 1);
#elif defined(GPU_FENCE)
    if (t < RANKS) {
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        put_relaxed(signal[t] + rank, 1);
    }
#elif !defined(SIGNAL_FIRST)
    if (t < RANKS) put(signal[t] + rank, 1);
#endif
#ifdef WRONG_SLOT
    if (t == 0) for (int peer = 0; peer < RANKS; ++peer) while (get(signal[rank] + rank) != 1) {}
#else
    if (t == 0) for (int peer = 0; peer < RANKS; ++peer) while (get(signal[rank] + peer) != 1) {}
#endif
    __syncthreads();
    for (int peer = 0; peer < RANKS; ++peer) out[peer * N + t] = data[rank][peer * N + t];
}
