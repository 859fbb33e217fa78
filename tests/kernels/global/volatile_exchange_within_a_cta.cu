// R-MO1, timing alone, within a CTA: two warps exchange volatile words in global memory, and no barrier comes between the stores and the loads.
//
// launch: grid=1 block=64
// arg:    words u32[64]=zeros
// arg:    out u32[64]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = (np.arange(64) ^ 32).astype(np.uint32) + 1
extern "C" __global__ void kernel(volatile unsigned* words, unsigned* out) {
    words[threadIdx.x] = threadIdx.x + 1;  /*@store*/
#ifndef RACY
    __syncthreads();
#endif
    out[threadIdx.x] = words[threadIdx.x ^ 32];  /*@load*/
}
