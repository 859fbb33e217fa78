extern __device__ float weight[4];
extern __shared__ float tile[];
static __device__ int called;
__device__ float value_of(int t);
extern "C" __global__ void sums(const float *x, float *out) {
    int t = threadIdx.x;
    tile[t] = x[blockIdx.x * 256 + t];
#ifndef RACY
    __syncthreads();
#endif
    float sum = 0;
    for (int i = 0; i < 256; i++) sum += value_of((t + i) % 256);
    if (t == 0) out[blockIdx.x] = sum * weight[blockIdx.x], atomicAdd(&called, 1);
}
