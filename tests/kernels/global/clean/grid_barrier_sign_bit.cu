// A barrier of the grid as cooperative groups have it: one CTA adds what is missing to the sign bit, and all poll until that bit flips.
//
// launch: grid=4 block=64
// arg:    data f32[256]=zeros
// arg:    arrived u32[1]=zeros
// arg:    out f32[256]=zeros
// result: out = np.arange(256, dtype=np.float32)[::-1]
__device__ void grid_sync(unsigned* arrived) {
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned added = blockIdx.x ? 1 : 0x80000000u - (gridDim.x - 1);
        __threadfence();
        unsigned before = atomicAdd(arrived, added);
        while (((before ^ *(volatile unsigned*)arrived) & 0x80000000u) == 0) {}
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void kernel(float* data, unsigned* arrived, float* out) {
    int i = blockIdx.x * 64 + threadIdx.x;
    data[i] = i;
    grid_sync(arrived);
    float value = data[255 - i];
    grid_sync(arrived);
    data[i] = -1;
    out[i] = value;
}
