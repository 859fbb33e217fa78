// A producer warp stores into a ring of mbarriers that the CTA's number sets the depth of: one to four stages, many phases.
// launch: grid=4 block=64 arch=sm_90
// arg: x f32[1280]=arange
// arg: out f32[4,32]=zeros
// result: out = np.tile(x.reshape(40, 32)[:, ::-1].sum(axis=0), (4, 1))
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 full[4], empty[4];
    __shared__ float ring[4][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, stages = blockIdx.x + 1;
    if (threadIdx.x < stages) {
        INIT(&full[threadIdx.x], 32);
        INIT(&empty[threadIdx.x], 32);
    }
    __syncthreads();
    int stage = 0, parity = 0;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 40; k++) {
        if (warp == 0) {
            WAIT(&empty[stage], parity ^ 1);
            ring[stage][lane] = x[k * 32 + lane];
            ARRIVE(&full[stage]);
        } else {
            WAIT(&full[stage], parity);
            sum += ring[stage][31 - lane];
            ARRIVE(&empty[stage]);
        }
        if (++stage == stages) stage = 0, parity ^= 1;
    }
    if (warp == 1) out[blockIdx.x * 32 + lane] = sum;
}
