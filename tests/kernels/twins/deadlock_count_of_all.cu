// An mbarrier counts all 96 threads, and the 64 that leave a value arrive: the others wait for it, and the 64 for those.
// launch: grid=1 block=96 arch=sm_90
// arg: x f32[64]=random
// arg: out f32[96]=zeros
// expect: deadlock severity=error
// result: out = np.append(x * 2, x[:32] + x[63:31:-1])
#include "../mbarrier.cuh"
#ifdef RACY
#define COUNT 96
#else
#define COUNT 64
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float values[64];
    __shared__ u64 left, summed;
    const int t = threadIdx.x;
    if (t == 0) {
        INIT(&left, COUNT);
        INIT(&summed, 32);
    }
    __syncthreads();
    if (t < 64) {
        values[t] = x[t];
        ARRIVE(&left);
        WAIT(&summed, 0);
        out[t] = 2 * values[t];
    } else {
        WAIT(&left, 0);
        out[t] = values[t - 64] + values[127 - t];
        ARRIVE(&summed);
    }
    __syncthreads();
}
