// out[t] = the sum over k of x[k] * a[k * 64 + t], for 64 threads t. The sum over k is split: CTA i takes `each` terms of it and stores its
// part in parts[i * 64 + t]. The CTA that counts last adds the parts, and resets the counter for the next launch.

#define THREADS 64

extern "C" __global__ void product(const float* x, const float* a, float* parts, unsigned* count, float* out, int each) {
    __shared__ bool last;
    int t = threadIdx.x, first = blockIdx.x * each;

    float sum = 0;
    for (int k = first; k < first + each; k++) sum += x[k] * a[k * THREADS + t];
    parts[blockIdx.x * THREADS + t] = sum;

    __syncthreads();
    if (t == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();

    float total = 0;
    for (int i = 0; i < gridDim.x; i++) total += parts[i * THREADS + t];
    out[t] = total;
    if (t == 0) *count = 0;
}
