// C = A * B with 32 x 32 tiles in shared memory, a float4 of results a thread.
constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(256) sgemm_tiled(const float* a, const float* b, float* c, int n)
{
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    const int row = threadIdx.x / 8, column = threadIdx.x % 8 * 4;
    const int out_row = blockIdx.y * TILE + row, out_column = blockIdx.x * TILE + column;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int k = 0; k < n; k += TILE) {
        *reinterpret_cast<float4*>(&tile_a[row][column]) = *reinterpret_cast<const float4*>(&a[out_row * n + k + column]);
        *reinterpret_cast<float4*>(&tile_b[row][column]) = *reinterpret_cast<const float4*>(&b[(k + row) * n + out_column]);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            const float left = tile_a[row][i];
            const float4 right = *reinterpret_cast<const float4*>(&tile_b[i][column]);
            sum.x += left * right.x;
            sum.y += left * right.y;
            sum.z += left * right.z;
            sum.w += left * right.w;
        }
        __syncthreads();
    }
    *reinterpret_cast<float4*>(&c[out_row * n + out_column]) = sum;
}
