// A ring of four stages whose consumers wait for the parity of the step, not of the lap: in every second step the phase is over (R-M6).
// launch: grid=1 block=64 arch=sm_90
// backends: cpu
// arg: x f32[128]=arange
// arg: out f32[32]=zeros
// arg: steps i32=4
// expect: missing-wait RAW @load @read severity=error
// allow: missing-wait
// allow: data-race
// allow: lifetime
// allow: barrier-misuse
// allow: deadlock severity=error
// result: out = x.reshape(4, 32)[:, ::-1].sum(axis=0)
#include "../mbarrier.cuh"
enum { STAGES = 4 };
#ifdef RACY
#define PARITY(step) (step)
#else
#define PARITY(step) ((step) / STAGES)
#endif
extern "C" __global__ void kernel(const float* x, float* out, int steps) {
    __shared__ alignas(128) float stage[STAGES][32];
    __shared__ u64 full[STAGES], empty[STAGES];
    int t = threadIdx.x;
    if (t == 0)
        for (int s = 0; s < STAGES; s++) {
            INIT(&full[s], 1);
            INIT(&empty[s], 32);
        }
    __syncthreads();
    if (t == 32) {
        for (int k = 0; k < steps; k++) {
            int s = k % STAGES;
            WAIT(&empty[s], k / STAGES & 1 ^ 1);
            ARRIVE_EXPECT(&full[s], sizeof stage[s]);
            BULK_LOAD(stage[s], x + k * 32, sizeof stage[s], &full[s]);  /*@load*/
        }
    } else if (t < 32) {
        float sum = 0;
        for (int k = 0; k < steps; k++) {
            int s = k % STAGES;
            WAIT(&full[s], PARITY(k) & 1);
            sum += stage[s][31 - t];  /*@read*/
            ARRIVE(&empty[s]);
        }
        out[t] = sum;
    }
}
