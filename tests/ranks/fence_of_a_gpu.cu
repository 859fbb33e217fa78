// Each thread of a CTA has a fence.sc at .gpu scope, one sets a flag: the fences of the next CTA of the same rank come after them (R-GM6). Those
// of another rank do not: ACROSS.
#include "ranks.cuh"
extern "C" __global__ void kernel(PEERS(float, data), PEERS(u32, signal), float *out, int rank) {
    LIST(float, data);
    LIST(u32, signal);
    u32 t = threadIdx.x, seen;
#ifdef ACROSS
    int from = (rank + 1) % RANKS;
#else
    int from = rank;
#endif
    if (blockIdx.x == 0) {
        data[rank][t] = rank + 1;
        asm volatile("fence.sc.gpu;" ::: "memory");
        __syncthreads();
        if (t == 0) put_relaxed(signal[rank], 1);
    } else {
        if (t == 0)
            do asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(signal[from]) : "memory");
            while (seen != 1);
        __syncthreads();
        asm volatile("fence.sc.gpu;" ::: "memory");
        out[t] = data[from][t];
    }
}
