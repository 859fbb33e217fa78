// The last CTA reads a histogram that all CTAs have added to, as in CUB's top-k (cccl 10627): thread 0 signals while other threads of its
// CTA may still add. A fence by each thread waits for no other thread.
//
// launch: grid=4 block=64
// arg:    bins u32[64]=zeros
// arg:    count u32[1]=zeros
// arg:    out u32[64]=zeros
// expect: global-race RAW @add @load severity=error
// result: out = np.full(64, 4, np.uint32)
extern "C" __global__ void kernel(unsigned* bins, unsigned* count, unsigned* out) {
    __shared__ bool last;
    atomicAdd(&bins[blockIdx.x * 16 + threadIdx.x % 16], 1);  /*@add*/
#ifndef RACY
    __syncthreads();
#endif
    __threadfence();
    if (threadIdx.x == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    out[threadIdx.x] = bins[threadIdx.x];  /*@load*/
}
