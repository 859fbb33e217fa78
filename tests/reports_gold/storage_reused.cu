// Two uses of a collective on one temporary storage, with no barrier between them: the second overwrites partial sums that a slow
// warp of the first still reads. The documentation of CUB asks for a barrier there, and programs forget it.
template <int Threads>
struct BlockSum {
    struct Storage {
        float partial[Threads / 32];
    };
    Storage& storage;

    __device__ float operator()(float value) {
        for (int step = 16; step; step /= 2) value += __shfl_down_sync(~0u, value, step);
        if (threadIdx.x % 32 == 0) storage.partial[threadIdx.x / 32] = value;
        __syncthreads();
        float sum = 0;
        for (int warp = 0; warp < Threads / 32; warp++) sum += storage.partial[warp];
        return sum;
    }
};

extern "C" __global__ void moments(const float* x, float* out) {
    __shared__ BlockSum<128>::Storage storage;
    float value = x[threadIdx.x];
    float sum = BlockSum<128>{storage}(value);
    float squares = BlockSum<128>{storage}(value * value);
    if (threadIdx.x == 0) out[0] = sum, out[1] = squares;
}
