// Values go to the next rank in turn through two buffers, each used again once the next rank has read it.
#include "ranks.cuh"
#ifdef ONE_BUFFER
#define BUFFERS 1
#else
#define BUFFERS 2
#endif
extern "C" __global__ void kernel(PEERS(float, data), PEERS(u32, signal), float *out, int rank) {
    LIST(float, data);
    LIST(u32, signal);
    u32 t = threadIdx.x;
    int next = (rank + 1) % RANKS, before = (rank + RANKS - 1) % RANKS;
    float sum = 0;
    for (u32 turn = 0; turn < 4; ++turn) {
        if (turn >= 2) {
            if (t == 0) while (!reached(get(signal[rank] + 1), turn - 1)) {}  // the next rank has read turn - 2
            __syncthreads();
        }
        data[next][turn % BUFFERS * N + t] = turn + rank;
        __syncthreads();
        if (t == 0) {
            put(signal[next], turn + 1);
            while (!reached(get(signal[rank]), turn + 1)) {}
        }
        __syncthreads();
        sum += data[rank][turn % BUFFERS * N + t];
        __syncthreads();
        if (t == 0) put(signal[before] + 1, turn + 1);
    }
    out[t] = sum;
}
