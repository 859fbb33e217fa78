// G5: barrier, then thread 0's fence and flag, as cooperative groups and CUTLASS's barrier.h do.
//
// launch: grid=2 block=64
// arg:    data f32[64]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[64]=zeros
// result: out = np.arange(64, dtype=np.float32)
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x;
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("fence.acq_rel.gpu;" ::: "memory");
            asm volatile("red.relaxed.gpu.global.add.s32 [%0], 1;" ::"l"(flag) : "memory");
        }
    } else {
        if (threadIdx.x == 0) {
            unsigned seen = 0;
            while (!seen) asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        }
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x];
    }
}
