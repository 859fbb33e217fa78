// Stream-K: the CTA that finishes a tile swaps the flag back with a relaxed compare-and-swap, then a barrier, then plain loads (as in
// CUTLASS's wait_eq_reset). The swap observes the release, but nothing acquires it (D18).
//
// launch: grid=2 block=64
// arg:    parts f32[64]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[64]=zeros
// expect: global-race RAW @store @load severity=error
// result: out = np.arange(64, dtype=np.float32)
extern "C" __global__ void kernel(float* parts, unsigned* flag, float* out) {
    if (blockIdx.x == 0) {
        parts[threadIdx.x] = threadIdx.x;  /*@store*/
        __syncthreads();
        if (threadIdx.x == 0) asm volatile("fence.acq_rel.gpu; red.relaxed.gpu.global.add.s32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        if (threadIdx.x == 0) {
            while (atomicCAS(flag, 1, 0) != 1) {}
#ifndef RACY
            __threadfence();
#endif
        }
        __syncthreads();
        out[threadIdx.x] = parts[threadIdx.x];  /*@load*/
    }
}
