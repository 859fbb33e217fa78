// A mailbox of one slot without an acknowledgement: the second message goes in although nobody has said that the first is out.
// Each message has a barrier of its own, so that no wait can miss its phase.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: data-race WAR @read @write severity=error
// allow: data-race RAW @write @read
// result: out = x.reshape(2, 32)[:, ::-1].reshape(-1)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ u64 sent[2], taken;
    __shared__ float slot[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        INIT(&sent[0], 32);
        INIT(&sent[1], 32);
        INIT(&taken, 32);
    }
    __syncthreads();
    if (warp == 0) {
#pragma unroll 1
        for (int k = 0; k < 2; k++) {
#ifndef RACY
            if (k) WAIT(&taken, 0);
#endif
            slot[lane] = x[k * 32 + lane];  /*@write*/
            ARRIVE(&sent[k]);
        }
    } else {
#pragma unroll 1
        for (int k = 0; k < 2; k++) {
            WAIT(&sent[k], 0);
            out[k * 32 + lane] = slot[31 - lane];  /*@read*/
            if (k == 0) ARRIVE(&taken);
        }
    }
}
