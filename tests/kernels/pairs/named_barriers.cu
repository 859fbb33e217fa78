// Producer and consumer warps with bar.arrive and bar.sync over two buffers (CUDA's old "named barrier" pipeline, CudaDMA).
// launch: grid=1 block=96 arch=sm_80
// arg: x f32[8,64]=random
// arg: out f32[64]=zeros
// result: out = x.sum(0)
// bug 1: data-race full is bar.arrive on both sides
// bug 2: data-race empty is not waited for
// bug 3: deadlock|barrier-misuse count of full is 64
// bug 4: data-race|barrier-misuse|deadlock the ids of both buffers are one
// bug 5: data-race the producer arrives at full before it stores
// bug 6: data-race consumers free the buffer before they read
// bug 7: barrier-misuse|deadlock|data-race consumers count 96, the producer 64
// bug 8: clean the consumers do one round less: an arrival is left over
// bug 9: clean the last round is not freed
// bug 10: barrier-misuse|deadlock count of 80: no multiple of the warp size
// bug 11: barrier-misuse|deadlock id 16
#include "../hopper.cuh"
INLINE void bsync(int id, int n) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }
INLINE void barrive(int id, int n) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory"); }
extern "C" __global__ void __launch_bounds__(96) kernel(const float* x, float* out) {
    __shared__ float buf[2][64];
    const int t = threadIdx.x;
    const int FULL = BUG == 11 ? 15 : 1, EMPTY = 3, N = BUG == 3 ? 64 : BUG == 10 ? 80 : 96;
    if (t < 32) {
#pragma unroll 1
        for (int k = 0; k < 8; k++) {
            int s = BUG == 4 ? 0 : k & 1, b = k & 1;
#if BUG != 2
            if (k >= 2) bsync(EMPTY + s, 96);
#endif
#if BUG == 5
            barrive(FULL + s, N);
#endif
            buf[b][t] = x[k * 64 + t];
            buf[b][t + 32] = x[k * 64 + t + 32];
#if BUG == 7
            barrive(FULL + s, 64);
#elif BUG != 5
            barrive(FULL + s, N);
#endif
        }
    } else {
        float sum = 0;
        int lane = t - 32;
#pragma unroll 1
        for (int k = 0; k < (BUG == 8 ? 7 : 8); k++) {
            int s = BUG == 4 ? 0 : k & 1, b = k & 1;
#if BUG == 1
            barrive(FULL + s, N);
#else
            bsync(FULL + s, N);
#endif
#if BUG == 6
            if (k < 6) barrive(EMPTY + s, 96);
#endif
            sum += buf[b][63 - lane];
#if BUG != 2 && BUG != 6
            if (k < 6 || BUG == 9 && k < 6) barrive(EMPTY + s, 96);
#endif
        }
        out[63 - lane] = sum;
    }
}
