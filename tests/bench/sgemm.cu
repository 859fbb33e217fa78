// The tiled product that the slowdown is measured on: 32x32 tiles, one element a thread, n a multiple of 32.
extern "C" __global__ void sgemm(const float* A, const float* B, float* C, int n) {
    __shared__ float As[32][32], Bs[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 32 + ty, col = blockIdx.x * 32 + tx;
    float acc = 0;
    for (int t = 0; t < n / 32; ++t) {
        As[ty][tx] = A[row * n + t * 32 + tx];
        Bs[ty][tx] = B[(t * 32 + ty) * n + col];
        __syncthreads();
        for (int k = 0; k < 32; ++k) acc += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    C[row * n + col] = acc;
}
