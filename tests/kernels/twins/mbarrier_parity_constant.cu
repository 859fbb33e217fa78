// The phase bit of the wait never changes: in each second round the wait returns at once. An H200 ends the racy kernel with a launch failure,
// because the thread arrives once more in a phase whose arrivals are complete.
// launch: grid=1 block=64 arch=sm_90
// backends: cpu
// arg: x f32[512]=arange
// arg: out f32[64]=zeros
// arg: rounds i32=4
// expect: missing-wait RAW @load @read severity=error
// allow: missing-wait WAW @load @load
// allow: data-race WAR @read @load
// allow: lifetime @load
// allow: barrier-misuse
// allow: deadlock severity=error
// result: out = (x.reshape(4, 128)[:, :64] + x.reshape(4, 128)[:, :63:-1]).sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out, int rounds) {
    __shared__ alignas(128) float stage[128];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) INIT(&full, 1);
    __syncthreads();
    u32 phase = 0;
    float sum = 0;
    for (int k = 0; k < rounds; k++) {
        if (t == 0) {
            ARRIVE_EXPECT(&full, sizeof stage);
            BULK_LOAD(stage, x + k * 128, sizeof stage, &full);  /*@load*/
        }
        WAIT(&full, phase);
#ifndef RACY
        phase ^= 1;
#endif
        sum += stage[t] + stage[127 - t];  /*@read*/
        __syncthreads();
    }
    out[t] = sum;
}
