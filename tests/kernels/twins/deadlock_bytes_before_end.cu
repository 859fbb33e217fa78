// More bytes are announced than the copy brings, and the threads that do not wait for it are at the barrier at the end of the kernel (R-M7).
// launch: grid=1 block=64 smem=1024 arch=sm_90a
// arg: x f32[64]=random
// arg: out f32[32]=zeros
// expect: deadlock severity=error
// result: out = x[:32]
// backends: cpu
#include "../hopper.cuh"
struct Shared {
    alignas(128) float tile[64];
    u64 full;
};
extern "C" __global__ void kernel(const float* x, float* out) {
    alignas(128) extern __shared__ char memory[];
    Shared& s = *(Shared*)memory;
    if (threadIdx.x == 0) init(s.full, 1);
    __syncthreads();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) {
#ifdef RACY
            expect(s.full, 256);
#else
            expect(s.full, 128);
#endif
            bulk_load(s.tile, x, 128, s.full);
        }
        wait(s.full, 0);
        out[threadIdx.x] = s.tile[threadIdx.x];
    }
    __syncthreads();
}
