// wgmma over a 3-stage TMA ring; one warpgroup; the stage is released one round later, when wait_group 1 has returned.
// launch: grid=1 block=160 arch=sm_90a
// arg: x f16[6,1024]=random
// arg: y f16[6,128]=random
// arg: out f32[64,8]=zeros
// bug 1: missing-wait the stage of this round is released behind wait_group 1
// bug 2: deadlock|missing-wait|barrier-misuse no release in the first round: all stages are one behind, and the last one is never freed
// bug 3: register-hazard|missing-wait no wait_group 0 at the end
// bug 4: missing-wait full is not waited for
// bug 5: barrier-misuse|deadlock all 128 threads release, count 1
// bug 6: clean all 128 threads release, count 128
// bug 7: missing-wait|data-race released before the products by another warp's thread
// bug 8: register-hazard the sum is read for a progress note behind wait_group 1
// bug 9: missing-wait|barrier-misuse|deadlock expect of A only
#include "../hopper.cuh"
extern "C" __global__ void __launch_bounds__(160) kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 A[3][1024], B[3][128];
    __shared__ alignas(8) u64 full[3], empty[3];
    const u32 t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 3; s++) init(full[s], 1), init(empty[s], BUG == 6 ? 128 : 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (t >= 128) {
        if (t == 128)
#pragma unroll 1
            for (u32 k = 0; k < 6; k++) {
                const u32 s = k % 3;
                wait(empty[s], (k / 3 & 1) ^ 1);
                expect(full[s], BUG == 9 ? 2048 : 2304);
                bulk_load(A[s], x + k * 1024, 2048, full[s]), bulk_load(B[s], y + k * 128, 256, full[s]);
            }
        return;
    }
    float d[4] = {0, 0, 0, 0};
    float note = 0;
#pragma unroll 1
    for (u32 k = 0; k < 6; k++) {
        const u32 s = k % 3;
#if BUG != 4
        wait(full[s], k / 3 & 1);
#endif
#if BUG == 7
        if (t == 96) arrive(empty[s]);
#endif
        keep(d);
        wgmma_fence();
        multiply(d, operand(A[s]), operand(B[s]), 1);
        wgmma_commit();
        keep(d);
        wgmma_wait<1>();
#if BUG == 8
        note += d[0];
#endif
        const u32 free = BUG == 1 ? s : (k + 2) % 3;
#if BUG == 7
#elif BUG == 5 || BUG == 6
        if (k > 0) arrive(empty[free]);
#elif BUG == 2
        if (k > 1 && t == 0) arrive(empty[free]);
#else
        if ((k > 0 || BUG == 1) && t == 0) arrive(empty[free]);
#endif
    }
#if BUG != 3
    wgmma_wait<0>();
#endif
    keep(d);
    d[0] += note * 0;
    write_result(out, d);
}
