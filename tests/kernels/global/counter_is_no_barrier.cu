// Threads of a CTA count themselves between a store and a load of what the first warp has stored. A count makes nobody wait: a barrier is missing.
//
// launch: grid=2 block=64
// arg:    data f32[128]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[128]=zeros
// expect: data-race @store @load severity=error
// result: out = np.tile(np.arange(32), 4).astype(np.float32)
extern "C" __global__ void kernel(float* data, unsigned* count, float* out) {
    float* mine = data + blockIdx.x * 64;
    mine[threadIdx.x] = threadIdx.x;  /*@store*/
    if (atomicAdd(count, 1u) == ~0u) return;
#ifndef RACY
    __syncthreads();
#endif
    out[blockIdx.x * 64 + threadIdx.x] = mine[threadIdx.x % 32];  /*@load*/
}
