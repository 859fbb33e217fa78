// One 64 x 64 tile a CTA with nvcuda::wmma, operands staged in shared memory as half.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;
constexpr int TILE = 64, STEP = 16;

extern "C" __global__ void __launch_bounds__(128) wmma_half(const half* a, const half* b, float* c, int n)
{
    __shared__ half tile_a[TILE][STEP + 8];
    __shared__ half tile_b[STEP][TILE + 8];
    const int warp = threadIdx.x / 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[4];
    for (auto& part : sum) wmma::fill_fragment(part, 0.0f);
    for (int k = 0; k < n; k += STEP) {
        for (int i = threadIdx.x; i < TILE * STEP; i += 128) {
            tile_a[i / STEP][i % STEP] = a[(blockIdx.y * TILE + i / STEP) * n + k + i % STEP];
            tile_b[i / TILE][i % TILE] = b[(k + i / TILE) * n + blockIdx.x * TILE + i % TILE];
        }
        __syncthreads();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
        wmma::load_matrix_sync(left, &tile_a[warp * 16][0], STEP + 8);
        for (int j = 0; j < 4; ++j) {
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
            wmma::load_matrix_sync(right, &tile_b[0][j * 16], TILE + 8);
            wmma::mma_sync(sum[j], left, right, sum[j]);
        }
        __syncthreads();
    }
    for (int j = 0; j < 4; ++j)
        wmma::store_matrix_sync(&c[(blockIdx.y * TILE + warp * 16) * n + blockIdx.x * TILE + j * 16], sum[j], n, wmma::mem_row_major);
}
