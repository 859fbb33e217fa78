// Persistent, warp-specialised: a producer warpgroup gives up registers, a consumer warpgroup takes them; tiles by a counter in shared memory.
// launch: grid=2 block=256 arch=sm_90a
// arg: x f32[8,256]=random
// arg: out f32[8]=zeros
// arg: next u32[1]=zeros
// result: out = x.sum(1)
// bug 1: data-race|missing-wait the tile number is overwritten before the consumers have read it
// bug 2: data-race the number is read without the wait
// bug 3: deadlock|barrier-misuse|missing-wait consumers leave one round early: the last stage is not released
// bug 4: barrier-misuse|deadlock all 128 consumers arrive where 4 warps are counted
// bug 5: missing-wait|uninitialized-read|data-race the end mark is not published by an arrival: consumers read the number with the stale parity
// bug 6: deadlock the producer ends without the end mark
// bug 7: clean without setmaxnreg
// bug 8: missing-wait|data-race one lane arrives before the warp's last shuffle and read
#include "../hopper.cuh"
extern "C" __global__ void __launch_bounds__(256) kernel(const float* x, float* out, u32* next) {
    __shared__ alignas(128) float ring[2][256];
    __shared__ alignas(8) u64 full[2], empty[2];
    __shared__ u32 tile[2];
    __shared__ float parts[4];
    const u32 t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 2; s++) init(full[s], 1), init(empty[s], 4);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (t < 128) {
#if BUG != 7
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
#endif
        if (t == 0) {
#pragma unroll 1
            for (u32 k = 0;; k++) {
                const u32 s = k & 1;
#if BUG != 1
                wait(empty[s], (k / 2 & 1) ^ 1);
#endif
                const u32 n = atomicAdd(next, 1);
#if BUG == 6
                if (n >= 8) break;
#endif
                tile[s] = n;
                if (n >= 8) {
#if BUG != 5
                    arrive(full[s]);
#endif
                    break;
                }
                expect(full[s], 1024);
                bulk_load(ring[s], x + n * 256, 1024, full[s]);
            }
        }
    } else {
#if BUG != 7
        asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
#endif
        const u32 c = t - 128, warp = c / 32, lane = c % 32;
#pragma unroll 1
        for (u32 k = 0;; k++) {
            const u32 s = k & 1;
#if BUG == 2
            const u32 early = *(volatile u32*)&tile[s];
            wait(full[s], k / 2 & 1);
            const u32 n = early;
#elif BUG == 5
            if (k < 2) wait(full[s], k / 2 & 1);
            const u32 n = tile[s];
#else
            wait(full[s], k / 2 & 1);
            const u32 n = tile[s];
#endif
            if (n >= 8) break;
            float v = ring[s][c] + ring[s][c + 128];
#if BUG == 8
            if (lane == 0) arrive(empty[s]);
            v += ring[s][c] * 0;
#endif
            for (u32 i = 16; i; i /= 2) v += __shfl_xor_sync(~0u, v, i);
            if (lane == 0) parts[warp] = v;
#if BUG == 4
            arrive(empty[s]);
#elif BUG == 3
            __syncwarp();
            if (lane == 0 && k < 1) arrive(empty[s]);
#elif BUG != 8
            __syncwarp();
            if (lane == 0) arrive(empty[s]);
#endif
            asm volatile("bar.sync 1, 128;" ::: "memory");
            if (c == 0) out[n] = parts[0] + parts[1] + parts[2] + parts[3];
            asm volatile("bar.sync 1, 128;" ::: "memory");
        }
    }
}
