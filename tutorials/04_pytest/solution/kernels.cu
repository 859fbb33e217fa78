// Reverses 128 numbers.
extern "C" __global__ void reverse(const float* x, float* out) {
    __shared__ float tile[128];
    int t = threadIdx.x;
    tile[t] = x[t];
    __syncthreads();
    out[t] = tile[127 - t];
}

// Adds up as many numbers as there are threads, a power of two and at most 128.
extern "C" __global__ void sum(const float* x, float* out) {
    __shared__ float part[128];
    int t = threadIdx.x;
    part[t] = x[t];
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) part[t] += part[t + half];
    }
    if (t == 0) out[0] = part[0];
}

// Tells whether any of the numbers is negative.
extern "C" __global__ void any_negative(const float* x, int* out) {
    __shared__ int found;
    int t = threadIdx.x;
    if (t == 0) found = 0;
    __syncthreads();
    if (x[t] < 0) found = 1;  // consan: allow(data-race) whoever stores here stores a 1
    __syncthreads();
    if (t == 0) out[0] = found;
}
