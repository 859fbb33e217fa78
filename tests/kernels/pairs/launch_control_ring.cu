// sm_100a: persistent over cluster launch control, the next request in flight while a tile is computed, two responses in turn.
// launch: grid=6 block=64 arch=sm_100a
// arg: x f32[6,64]=random
// arg: out f32[6,64]=zeros
// result: out = x * 2
// bug 1: missing-wait the response is read before the wait
// bug 2: data-race|missing-proxy-fence one response slot: requested again while warp 1 reads it
// bug 3: deadlock 8 bytes are expected
// bug 4: clc-misuse a request behind a refusal
// bug 5: clc-misuse the id is used without a look whether it was cancelled
// bug 6: data-race|missing-wait only warp 0 waits, and no barrier
// bug 7: clean only warp 0 waits, and hands the id on through shared memory
// bug 8: deadlock|barrier-misuse|missing-wait the parity is not flipped
#include "../blackwell.cuh"
extern "C" __global__ void __launch_bounds__(64) kernel(const float* x, float* out) {
    __shared__ Response slots[2];
    __shared__ alignas(8) u64 full[2];
    __shared__ u32 handed[2];
    const u32 t = threadIdx.x;
    if (t == 0) {
        init(full[0], 1), init(full[1], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    u32 tile = blockIdx.x;
    const u32 bytes = BUG == 3 ? 8 : 16;
    if (t == 0) expect(full[0], bytes), request(slots[0], full[0]);
#pragma unroll 1
    for (u32 k = 0;; k++) {
        const u32 s = BUG == 2 ? 0 : k & 1;
        out[tile * 64 + t] = x[tile * 64 + t] * 2;
        u32 next = 0;
        bool more;
        const u32 parity = BUG == 2 ? k & 1 : BUG == 8 ? 0 : k / 2 & 1;
#if BUG == 7
        if (t < 32) {
            wait(full[s], parity);
            more = taken(slots[s], next);
            if (t == 0) handed[s] = more ? next : ~0u;
        }
        __syncthreads();
        next = handed[s], more = next != ~0u;
#else
#if BUG == 6
        if (t < 32) wait(full[s], parity);
#elif BUG != 1
        wait(full[s], parity);
#endif
#if BUG == 5
        next = first_of(slots[s]) % 6, more = k < 7;
#else
        more = taken(slots[s], next);
#endif
#if BUG == 1
        wait(full[s], parity);
#endif
#endif
        const u32 q = BUG == 2 ? 0 : s ^ 1;
#if BUG != 2
        fence_async_shared();
        __syncthreads();
#endif
        if (t == 0 && (more || BUG == 4)) expect(full[q], bytes), request(slots[q], full[q]);
        if (!more || (BUG == 8 && k == 6)) break;
        tile = next;
    }
#if BUG == 4
    wait(full[0], 0), wait(full[1], 0);
#endif
}
