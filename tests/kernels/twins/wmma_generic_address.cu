// A warp stores a matrix of 8 columns by a generic address, with a distance between its columns; another one reads what it stored.
//
// launch: grid=2 block=64
// arg: in_shared i32=1
// arg: c f32[256]=zeros
// arg: out f32[64]=zeros
// expect: data-race RAW @store @load severity=error
// allow: uninitialized-read @load
// result: out = np.full(64, 3)
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void kernel(int in_shared, float* c, float* out) {
    __shared__ __align__(32) float tile[32 * 12];
    float* to = in_shared ? tile : c;
    wmma::fragment<wmma::accumulator, 8, 32, 16, float> sum;
    wmma::fill_fragment(sum, 3.f);
    if (threadIdx.x < 32) wmma::store_matrix_sync(to, sum, 12, wmma::mem_col_major);  /*@store*/
#ifndef RACY
    __syncthreads();
#endif
    if (threadIdx.x >= 32) out[blockIdx.x * 32 + threadIdx.x - 32] = to[(threadIdx.x - 32) * 12 + 7];  /*@load*/
}
