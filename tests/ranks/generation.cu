// Rounds behind a barrier whose generation goes on from launch to launch: it wraps in the second round.
#include "ranks.cuh"
__device__ bool past(u32 seen, u32 value) {
#ifdef WRAPS
    return seen >= value;
#else
    return reached(seen, value);
#endif
}
extern "C" __global__ void kernel(PEERS(float, data), PEERS(u32, signal), float *out, int rank) {
    LIST(float, data);
    LIST(u32, signal);
    u32 t = threadIdx.x;
    for (u32 round = 0; round < 2; ++round) {
        u32 generation = 0xffffffffu + round;
        data[rank][round * N + t] = rank + round;
        __syncthreads();
        if (t < RANKS) {
            put(signal[t] + rank, generation);
            u32 seen;
            while (!past(seen = get(signal[rank] + t), generation)) {}
#ifdef WRAPS
            out[2 * N + t] = seen;
#endif
        }
        __syncthreads();
        float sum = 0;
        for (int peer = 0; peer < RANKS; ++peer) sum += data[peer][round * N + t];
        out[round * N + t] = sum;
    }
}
