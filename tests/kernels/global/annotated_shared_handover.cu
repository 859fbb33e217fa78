// A warp hands shared memory to another by a relaxed flag. The order is one that no rule sees, and annotations name it by an address there.
//
// launch: grid=2 block=64
// arg:    out f32[2]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = np.float32([3, 4])
// backends: cpu
#include <consan.h>
extern "C" __global__ void kernel(float* out) {
    __shared__ volatile unsigned flag;
    __shared__ float stage[32];
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        stage[blockIdx.x] = 3 + blockIdx.x;  /*@write*/
#ifndef RACY
        consan_release(stage);
#endif
        flag = 1;
    } else if (threadIdx.x == 32) {
        while (!flag) {}
#ifndef RACY
        consan_acquire(stage);
#endif
        out[blockIdx.x] = stage[blockIdx.x];  /*@read*/
    }
}
