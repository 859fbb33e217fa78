// The last CTA clears the places of all CTAs. The tickets behind that do not make the others wait for it: all CTAs may read them later.
// launch: grid=4 block=64
// arg: x f32[256]=arange
// arg: parts f32[256]=random
// arg: tickets u32[1]=zeros
// arg: out f32[64]=zeros
// expect: global-race WAW @store @clear severity=error
// result: out = x.reshape(4, 64).sum(axis=0)
extern "C" __global__ void kernel(const float* x, float* parts, unsigned* tickets, float* out) {
    __shared__ bool last;
    int t = threadIdx.x, own = blockIdx.x * 64 + t;
#ifdef RACY
    if (blockIdx.x == gridDim.x - 1)
        for (int i = 0; i < 4; i++) parts[i * 64 + t] = 0.0f;  /*@clear*/
#endif
    parts[own] = x[own];  /*@store*/
    __threadfence();
    __syncthreads();
    if (t == 0) {
        last = atomicAdd(tickets, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last) out[t] = parts[t] + parts[64 + t] + parts[128 + t] + parts[192 + t];
}
