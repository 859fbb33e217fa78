// Sums that two streams add to (RACY: with a scope that excludes the other launch), and data behind a flag.
extern "C" __global__ void add(int *sums) {
#ifdef RACY
    atomicAdd_block(&sums[threadIdx.x], 1);
#else
    atomicAdd(&sums[threadIdx.x], 1);
#endif
}

extern "C" __global__ void publish(int *data, int *flag) {
    data[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}

extern "C" __global__ void consume(const int *data, int *flag, int *out) {
    int seen = 0;
    if (threadIdx.x == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    if (__syncthreads_or(seen)) out[threadIdx.x] = data[threadIdx.x];
}
