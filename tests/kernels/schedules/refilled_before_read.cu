// A ring of two stages, filled by one thread. In the racy twin it never waits for `empty`, and is so far ahead in the first schedule that
// nobody reads between its copies: they are seen to overwrite each other, and then threads wait for ever. Schedules that hold it show who reads.
// launch: grid=1 block=160 arch=sm_90
// arg: x f32[1024]=arange
// arg: out f32[128]=zeros
// expect: data-race WAR @read @load severity=error
// result: out = x.reshape(8, 128)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float stage[2][128];
    __shared__ u64 full[2], empty[2];
    const u32 t = threadIdx.x;
    if (t < 2) {
        INIT(&full[t], 1);
        INIT(&empty[t], 128);
    }
    __syncthreads();
    if (t == 128) {
        for (u32 k = 0; k < 8; k++) {
#ifndef RACY
            WAIT(&empty[k & 1], (k >> 1 & 1) ^ 1);
#endif
            ARRIVE_EXPECT(&full[k & 1], 512);
            BULK_LOAD(stage[k & 1], x + 128 * k, 512, &full[k & 1]); /*@load*/
        }
    } else if (t < 128) {
        float sum = 0;
        for (u32 k = 0; k < 8; k++) {
            WAIT(&full[k & 1], k >> 1 & 1);
            sum += stage[k & 1][127 - t]; /*@read*/
            ARRIVE(&empty[k & 1]);
        }
        out[t] = sum;
    }
}
