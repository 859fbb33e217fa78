// Half-precision arithmetic from <cuda_fp16.h> on a tile in shared memory.
// launch: grid=1 block=64
// arg: x f16[128]=random
// arg: out f16[128]=zeros
// result: out = (x + x[::-1])
#include <cuda_fp16.h>
extern "C" __global__ void kernel(const __half2* x, __half2* out) {
    __shared__ __half2 tile[64];
    int t = threadIdx.x;
    tile[t] = __lowhigh2highlow(x[t]);
    __syncthreads();
    out[t] = __hadd2(x[t], tile[63 - t]);
}
