// A pipeline of bulk copies in loops whose trip counts only the launch knows; CTAs run it for different numbers of rows, one for none.
// launch: grid=4 block=96 arch=sm_90a
// arg: x f32[4,7,64]=random
// arg: counts i32[4]=arange
// arg: out f32[4,64]=zeros
// result: out = np.stack([x[c, : 2 * c].sum(axis=0) for c in range(4)])
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, const int* counts, float* out) {
    __shared__ alignas(128) float ring[3][64];
    __shared__ u64 full[3], empty[3];
    int t = threadIdx.x, rows = counts[blockIdx.x] * 2;
    if (t == 0) {
        for (int s = 0; s < 3; s++) {
            init(full[s], 1);
            init(empty[s], 2);
        }
    }
    __syncthreads();
    x += blockIdx.x * 7 * 64;
    if (t == 64) {
        int s = 0, phase = 0;
#pragma unroll 1
        for (int k = 0; k < rows; k++) {
            wait(empty[s], phase ^ 1);
            expect(full[s], 256);
            bulk_load(ring[s], x + k * 64, 256, full[s]);
            if (++s == 3) s = 0, phase ^= 1;
        }
    } else if (t < 64) {
        float sum = 0.0f;
        int s = 0, phase = 0;
#pragma unroll 1
        for (int k = 0; k < rows; k++) {
            wait(full[s], phase);
            sum += ring[s][t];
            __syncwarp();
            if (t % 32 == 0) arrive(empty[s]);
            if (++s == 3) s = 0, phase ^= 1;
        }
        out[blockIdx.x * 64 + t] = sum;
    }
}
