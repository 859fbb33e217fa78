// Two warps hand over a slot by flags. The leader of the reading warp frees it before the other lanes have read (R-W1).
// launch: grid=1 block=64
// arg: in f32[128]=arange
// arg: out f32[128]=zeros
// expect: data-race @read @write severity=error
// result: out = np.arange(128, dtype=np.float32).reshape(4, 32)[:, ::-1]
__device__ void store(int* flag, int value) {
    asm volatile("st.release.cta.shared::cta.s32 [%0], %1;" ::"r"((unsigned)__cvta_generic_to_shared(flag)), "r"(value) : "memory");
}
__device__ int load(int* flag) {
    int value;
    asm volatile("ld.acquire.cta.shared::cta.s32 %0, [%1];" : "=r"(value) : "r"((unsigned)__cvta_generic_to_shared(flag)) : "memory");
    return value;
}
extern "C" __global__ void kernel(const float* in, float* out) {
    __shared__ float slot[32];
    __shared__ int filled, freed;
    int t = threadIdx.x, lane = t % 32;
    if (t == 0) filled = freed = 0;
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        if (t < 32) {
            if (lane == 0) while (load(&freed) < k) {}
            __syncwarp();
            slot[lane] = in[k * 32 + lane];  /*@write*/
            __syncwarp();
            if (lane == 0) store(&filled, k + 1);
        } else {
            if (lane == 0) while (load(&filled) <= k) {}
            __syncwarp();
            out[k * 32 + lane] = slot[31 - lane];  /*@read*/
#ifndef RACY
            __syncwarp();
#endif
            if (lane == 0) store(&freed, k + 1);
        }
    }
}
