// nvcuda::wmma: warps load fragments of A and B from tiles that other warps have filled, and the result is read by other warps.
//
// launch: grid=2 block=128
// arg: a f16[512]=arange
// arg: c f32[512]=zeros
// expect: data-race RAW @fill @load severity=error
// allow: uninitialized-read @load
// result: c = np.tile((a.astype(np.float32)[:256].reshape(16, 16) @ a.astype(np.float32)[256:].reshape(16, 16).T).reshape(-1), 2)
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void kernel(const half* a, float* c) {
    __shared__ __align__(32) half tiles[2][256];
    __shared__ __align__(32) float sums[256];
    for (int i = threadIdx.x; i < 512; i += 128) tiles[i / 256][i % 256] = a[i];  /*@fill*/
#ifndef RACY
    __syncthreads();
#endif
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.f);
    if (threadIdx.x < 32) {
        wmma::load_matrix_sync(left, tiles[0], 16);  /*@load*/
        wmma::load_matrix_sync(right, tiles[1], 16);  /*@load*/
        wmma::mma_sync(sum, left, right, sum);
        wmma::store_matrix_sync(sums, sum, 16, wmma::mem_row_major);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 128) c[blockIdx.x * 256 + i] = sums[i];
}
