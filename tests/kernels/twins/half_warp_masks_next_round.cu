// Each half of a warp transposes tiles of its own, with a mask that it computes: behind the read lacks the barrier before the next round's write.
// A fence stands there (R-W1).
// launch: grid=1 block=64
// arg: x f32[64]=random
// arg: out f32[64]=zeros
// expect: data-race WAR @read @write severity=error
// result: out = x.reshape(4, 4, 4).transpose(0, 2, 1).ravel() + 3
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    unsigned t = threadIdx.x, mask = 0xffffu << (t & 16), first = t & ~15u, row = t % 16 / 4, column = t % 4;
    float value = x[t];
    for (int k = 0; k < 3; k++) {
        tile[first + row * 4 + column] = value;  /*@write*/
        __syncwarp(mask);
        value = tile[first + column * 4 + row] + 1;  /*@read*/
#ifdef RACY
        __threadfence_block();
#else
        __syncwarp(mask);
#endif
    }
    out[t] = value;
}
