// R-GM10: an atomic of a packed type is two atomics of its halves, so it is morally strong with an atomic of one.
//
// launch: grid=2 block=32
// arg:    sums f16[64]=zeros
// result: sums = np.where(np.arange(64) < 32, np.where(np.arange(64) % 2, 3, 2), 0)
#include <cuda_fp16.h>
extern "C" __global__ void kernel(__half* sums) {
    if (blockIdx.x == 0) {
        if (threadIdx.x < 32) atomicAdd(sums + threadIdx.x, __float2half(1));
    } else if (threadIdx.x < 16) {
        atomicAdd(reinterpret_cast<__half2*>(sums) + threadIdx.x, __floats2half2_rn(1, 2));
    }
}
