// A thread's fence covers all that it has written before, though it stands in the code for another buffer.
// launch: grid=1 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: y f32[64]=arange
// arg: both i32=1
// arg: out f32[128]=zeros
// result: out = np.concatenate([x + 1, y * 2])
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, const float* y, int both, float* out) {
    __shared__ alignas(128) float first[64], second[64];
    int t = threadIdx.x;
    first[t] = x[t] + 1;
    if (both) {
        second[t] = y[t] * 2;
        fence_async_shared();  // for `second`
    }
    __syncthreads();
    if (t == 0) {
        bulk_store(out, first, sizeof first);
        if (both) bulk_store(out + 64, second, sizeof second);
        bulk_commit();
        bulk_wait<0>();
    }
}
