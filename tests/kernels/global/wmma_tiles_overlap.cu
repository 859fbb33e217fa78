// wmma.store of a warp for each CTA: matrices whose last row is the first one of the next CTA's.
//
// launch: grid=3 block=32
// arg: c f32[768]=zeros
// expect: global-race WAW @store @store severity=error
// result: c = np.repeat(np.arange(3), 256)
#include <mma.h>
using namespace nvcuda;
#ifdef RACY
#define STEP 240
#else
#define STEP 256
#endif
extern "C" __global__ void kernel(float* c) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, float(blockIdx.x));
    wmma::store_matrix_sync(c + blockIdx.x * STEP, sum, 16, wmma::mem_row_major);  /*@store*/
}
