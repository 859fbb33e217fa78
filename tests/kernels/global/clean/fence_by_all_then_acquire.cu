// G6, D17: every thread executes __threadfence() (fence.sc), then a barrier, then thread 0 sets the flag. The reader's poll is an acquire.
//
// launch: grid=2 block=64 arch=sm_90
// arg:    data f32[64]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[64]=zeros
// result: out = np.arange(64, dtype=np.float32)
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        unsigned seen = 0;
        if (threadIdx.x == 0)
            while (!seen) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x];
    }
}
