// The last of several CTAs is known by an atomic increment that wraps, so the counter is ready for the next launch. As threadFenceReduction
// of the CUDA samples: all threads fence, a barrier, thread 0 counts, a barrier, the last CTA reads.
//
// launch: grid=4 block=64
// arg:    partial f32[256]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[64]=zeros
// result: out = 4 * np.arange(64, dtype=np.float32)
// result: count = np.uint32([0])
extern "C" __global__ void kernel(float* partial, unsigned* count, float* out) {
    __shared__ bool last;
    partial[blockIdx.x * 64 + threadIdx.x] = threadIdx.x;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    float sum = 0;
    for (int i = 0; i < 4; i++) sum += partial[i * 64 + threadIdx.x];
    out[threadIdx.x] = sum;
}
