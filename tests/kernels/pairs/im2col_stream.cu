// Columns of a convolution by TMA in im2col mode (1-d, N W C), two stages; a 1 x 3 filter of ones, summed over channels.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: map tma:f32[2,16,8]=random,lower=-1,upper=-1,channels=8,pixels=16
// arg: out f32[3,16]=zeros
// bug 1: data-race the stage is refilled without a barrier
// bug 2: missing-wait the second stage is read behind the first one's phase
// bug 3: deadlock|barrier-misuse expects the bytes of 8 pixels
// bug 4: clean two loads, one barrier, both counted
// bug 5: missing-wait no wait
#include "../hopper.cuh"
INLINE void im2col(void* to, const TensorMap& map, int c, int w, int n, unsigned short offset, u64& barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5], {%6};"
                 ::"r"(shared(to)), "l"(&map), "r"(c), "r"(w), "r"(n), "r"(shared(&barrier)), "h"(offset) : "memory");
}
extern "C" __global__ void __launch_bounds__(64) kernel(const float* x, const __grid_constant__ TensorMap map, float* out) {
    __shared__ alignas(128) float stage[2][128];
    __shared__ alignas(8) u64 full[2];
    const u32 t = threadIdx.x;
    if (t == 0) {
        init(full[0], 1), init(full[1], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const u32 bytes = BUG == 3 ? 256 : 512;
    if (t == 0) {
        expect(full[0], BUG == 4 ? 1024 : bytes);
        im2col(stage[0], map, 0, -1, 0, 0, full[0]);
        if (BUG != 4) expect(full[1], bytes);
        im2col(stage[1], map, 0, -1, 0, 1, full[BUG == 4 ? 0 : 1]);
    }
    for (u32 k = 0; k < 3; k++) {
        const u32 s = k & 1;
#if BUG == 2
        wait(full[0], k / 2 & 1);
#elif BUG == 4
        if (k != 1) wait(full[0], k / 2 & 1);
#elif BUG != 5
        wait(full[s], k / 2 & 1);
#endif
        if (t < 16) {
            float sum = 0;
            for (u32 c = 0; c < 8; c++) sum += stage[s][t * 8 + c];
            out[k * 16 + t] = sum * x[t];
        }
#if BUG != 1
        __syncthreads();
#endif
        if (k == 0 && t == 32) {
            expect(full[0], bytes);
            im2col(stage[0], map, 0, -1, 0, 2, full[0]);
        }
    }
#if BUG == 5
    __syncthreads();
#endif
}
