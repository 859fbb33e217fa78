// A barrier of the grid by a counter: thread 0 of each CTA arrives with a release and polls with an acquire. Used twice.
//
// launch: grid=4 block=64
// arg:    data f32[256]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[256]=zeros
// result: out = np.arange(256, dtype=np.float32)[::-1]
__device__ void arrive_and_wait(unsigned* count, unsigned expected) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (*(volatile unsigned*)count < expected) {}
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void kernel(float* data, unsigned* count, float* out) {
    int i = blockIdx.x * 64 + threadIdx.x;
    data[i] = i;
    arrive_and_wait(count, 4);
    float value = data[255 - i];
    arrive_and_wait(count, 8);
    data[i] = -1;
    out[i] = value;
}
