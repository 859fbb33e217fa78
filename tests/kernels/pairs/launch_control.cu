// sm_100a: a persistent kernel by cluster launch control, as CUTLASS's PersistentTileSchedulerSm100: scheduler warp, ring of 2 responses, workers.
// launch: grid=6 block=96 arch=sm_100a
// arg: x f32[6,64]=arange
// arg: y f32[6,64]=zeros
// bug 1: missing-wait workers do not wait for the response
// bug 2: data-race|missing-wait|deadlock the slot is requested again before the workers have read it
// bug 3: deadlock|missing-wait 8 bytes expected
// bug 4: clc-misuse the scheduler goes on after a refusal
// bug 5: clc-misuse all lanes request
// bug 6: missing-wait|clc-misuse|barrier-misuse|data-race|deadlock workers' parity never flips
// bug 7: deadlock empty counts 65
// bug 8: data-race|missing-wait workers arrive before they read the response
// bug 9: clc-misuse the id is used without a look at is_canceled
#include "../blackwell.cuh"
extern "C" __global__ void __launch_bounds__(96) kernel(const float* x, float* y) {
    __shared__ Response ring[2];
    __shared__ alignas(8) u64 full[2], empty[2];
    const u32 t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 2; s++) init(full[s], 1), init(empty[s], BUG == 7 ? 66 : 65);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (t >= 64) {
#if BUG == 5
        {
#else
        if (t == 64) {
#endif
#pragma unroll 1
            for (int n = 0; n < 7; n++) {
                int s = n % 2;
#if BUG != 2
                wait(empty[s], (n / 2 & 1) ^ 1);
#endif
                if (t == 64) expect(full[s], BUG == 3 ? 8 : 16);
                request(ring[s], full[s]);
                wait(full[s], n / 2 & 1);
                u32 next;
                bool more = taken(ring[s], next);
                fence_async_shared();
                if (t == 64) arrive(empty[s]);
#if BUG != 4
                if (!more) break;
#endif
            }
        }
    } else {
        u32 tile = blockIdx.x;
#pragma unroll 1
        for (int n = 0; n < 7; n++) {
            int s = n % 2;
            y[tile * 64 + t] = x[tile * 64 + t] * 2;
#if BUG == 6
            wait(full[s], 0);
#elif BUG != 1
            wait(full[s], n / 2 & 1);
#endif
#if BUG == 8
            arrive(empty[s]);
#endif
            u32 next = 0;
#if BUG == 9
            next = first_of(ring[s]);
            bool more = next < 6;
#else
            bool more = taken(ring[s], next);
#endif
            fence_async_shared();
#if BUG != 8
            arrive(empty[s]);
#endif
            if (!more) break;
            tile = next;
        }
    }
}
