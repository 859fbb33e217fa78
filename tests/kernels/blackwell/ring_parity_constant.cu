// The issuer of the products waits for the same parity in each round: in every second one the copy has not come, and is then sent too early.
// launch: grid=1 block=64 arch=sm_100a
// arg: x f16[6,3072]=random
// arg: out f32[1]=zeros
// arg: rounds i32=6
// expect: missing-wait @product @load severity=error
// allow: missing-wait
// allow: lifetime
// allow: barrier-misuse
// allow: deadlock severity=error
// result: out = np.ones(1)
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, float* out, int rounds) {
    __shared__ alignas(128) f16 stage[2][3072];
    __shared__ u32 base;
    __shared__ u64 full[2], empty[2], done;
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; s++) init(full[s], 1), init(empty[s], 1);
        init(done, 1);
    }
    if (threadIdx.x < 32) alloc(base, COLUMNS);
    __syncthreads();
    if (threadIdx.x == 32) {
        for (int k = 0; k < rounds; k++) {
            int s = k & 1;
            wait(empty[s], k >> 1 & 1 ^ 1);
            expect(full[s], 6144);
            bulk_load(stage[s], x + k * 3072, 6144, full[s]);  /*@load*/
        }
    } else if (threadIdx.x == 0) {
        for (int k = 0; k < rounds; k++) {
            int s = k & 1;
#ifdef RACY
            wait(full[s], 0);  /*@culprit*/
#else
            wait(full[s], k >> 1 & 1);
#endif
            fence_after_sync();
            multiply(base, stage[s], stage[s] + 2048, k > 0);  /*@product*/
            commit_to(empty[s]);
        }
        commit_to(done);
    }
    wait(done, 0);
    fence_after_sync();
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
    if (threadIdx.x == 0) out[0] = 1;
}
