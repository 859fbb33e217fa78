// Warp-specialised with cp.async: producers arrive with cp.async.mbarrier.arrive.noinc at `full`, consumers at `empty`.
// launch: grid=2 block=128 arch=sm_80
// arg: x f32[2,6,256]=random
// arg: out f32[2,64]=zeros
// result: out = x.reshape(2, 6, 4, 64).sum((1, 2))
// bug 1: barrier-misuse|deadlock arrive without noinc at a barrier of count 64: pending count only goes back
// bug 2: missing-wait ordinary arrive in place of cp.async.mbarrier.arrive
// bug 3: missing-wait|barrier-misuse full counts 1
// bug 4: data-race|missing-wait producers do not wait for empty
// bug 5: missing-wait|data-race|barrier-misuse consumers do not flip the parity
// bug 6: missing-wait|data-race consumers release before they read
// bug 7: missing-wait arrive before the copies
// bug 8: barrier-misuse|deadlock|data-race|missing-wait lane 0 of each consumer warp arrives at a barrier of 64
// bug 9: clean lane 0 behind __syncwarp, count 2
// bug 10: data-race|missing-wait warn lane 0 of each consumer warp arrives at a barrier of 2, no __syncwarp
// bug 11: clean arrive without noinc, and an ordinary one behind it, count 64
#include "../hopper.cuh"
INLINE void copies_arrive(u64& bar) { asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared(&bar)) : "memory"); }
INLINE void copies_arrive_inc(u64& bar) { asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(shared(&bar)) : "memory"); }
INLINE void arrive80(u64& b) { asm volatile("{.reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0];}" ::"r"(shared(&b)) : "memory"); }
INLINE void wait80(u64& b, u32 parity) {
    asm volatile("{\n.reg .pred p;\nL: mbarrier.test_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra L;\n}" ::"r"(shared(&b)), "r"(parity) : "memory");
}
extern "C" __global__ void __launch_bounds__(128) kernel(const float* x, float* out) {
    __shared__ alignas(16) float ring[2][256];
    __shared__ alignas(8) u64 full[2], empty[2];
    const int t = threadIdx.x;
    if (t < 2) {
        init(full[t], BUG == 3 ? 1 : 64);
        init(empty[t], BUG == 9 || BUG == 10 ? 2 : 64);
    }
    __syncthreads();
    if (t < 64) {
        for (int k = 0; k < 6; k++) {
            int s = k % 2;
#if BUG != 4
            wait80(empty[s], (k / 2 & 1) ^ 1);
#endif
#if BUG == 7
            copies_arrive(full[s]);
#endif
            copy16(&ring[s][t * 4], x + blockIdx.x * 1536 + k * 256 + t * 4);
#if BUG == 1
            copies_arrive_inc(full[s]);
#elif BUG == 11
            copies_arrive_inc(full[s]);
            arrive80(full[s]);
#elif BUG == 2
            arrive80(full[s]);
#elif BUG != 7
            copies_arrive(full[s]);
#endif
        }
#if BUG == 2 || BUG == 7 || BUG == 3
        asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    } else {
        float sum = 0;
        int lane = t - 64;
        for (int k = 0; k < 6; k++) {
            int s = k % 2;
#if BUG == 5
            wait80(full[s], 0);
#else
            wait80(full[s], k / 2 & 1);
#endif
#if BUG == 6
            arrive80(empty[s]);
#endif
            for (int i = 0; i < 4; i++) sum += ring[s][i * 64 + lane];
#if BUG == 8 || BUG == 10
            if (lane % 32 == 0) arrive80(empty[s]);
#elif BUG == 9
            __syncwarp();
            if (lane % 32 == 0) arrive80(empty[s]);
#elif BUG != 6
            arrive80(empty[s]);
#endif
        }
        out[blockIdx.x * 64 + lane] = sum;
    }
}
