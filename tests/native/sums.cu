extern "C" __global__ void sums(const float *x, float *out) {
    __shared__ float tile[256];
    int t = threadIdx.x;
    tile[t] = x[blockIdx.x * 256 + t];
#ifndef RACY
    __syncthreads();
#endif
    float sum = 0;
    for (int i = 0; i < 256; i++) sum += tile[i];
    if (t == 0) out[blockIdx.x] = sum;
}
