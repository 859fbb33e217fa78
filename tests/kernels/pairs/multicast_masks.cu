// Cluster of 4 (2 x 2): rows share A, columns share B; each tile is multicast by one CTA. As in tutorials of TMA multicast.
// launch: grid=2x2 block=64 arch=sm_90
// arg: a f32[2,64]=random
// arg: b f32[2,64]=random
// arg: out f32[2,2,64]=zeros
// result: out = a[:, None, :] + b[None, :, :]
// bug 1: deadlock mask of A lacks one CTA
// bug 2: data-race|barrier-misuse|deadlock|missing-wait masks of A name the whole cluster
// bug 3: deadlock|barrier-misuse expect only the bytes that the CTA itself issues
// bug 4: lifetime|barrier-misuse no cluster barrier behind the init
// bug 5: clean rows and columns are swapped: each CTA gets one tile, a wrong one
// bug 6: clean no cluster barrier at the end: each CTA has waited for all that comes to it
// bug 7: missing-wait|data-race the readers do not wait
// bug 8: barrier-misuse|deadlock|missing-wait too few bytes expected
// bug 9: barrier-misuse|deadlock|missing-wait both CTAs of a row send A
#include "../hopper.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 2) __launch_bounds__(64) kernel(const float* a, const float* b, float* out) {
    __shared__ alignas(128) float A[64], B[64];
    __shared__ alignas(8) u64 full;
    const u32 t = threadIdx.x, rank = cluster_rank(), row = rank / 2, column = rank % 2;
    if (t == 0) {
        init(full, 1);
        FENCE_INIT();
    }
#if BUG == 4
    __syncthreads();
#else
    CLUSTER_SYNC();
#endif
    if (t == 0) {
#if BUG == 3
        expect(full, column == 0 && row == 0 ? 512 : column == 0 || row == 0 ? 256 : 0);
#elif BUG == 8
        expect(full, 256);
#else
        expect(full, 512);
#endif
#if BUG == 1
        const u32 mask_a = 1 << (row * 2);
#elif BUG == 2
        const u32 mask_a = 15;
#elif BUG == 5
        const u32 mask_a = 5 << row;
#else
        const u32 mask_a = 3 << (row * 2);
#endif
#if BUG == 9
        MULTICAST(A, a + row * 64, 256, &full, mask_a);
#else
        if (column == 0) MULTICAST(A, a + row * 64, 256, &full, mask_a);
#endif
        if (row == 0) MULTICAST(B, b + column * 64, 256, &full, 5 << column);
    }
#if BUG != 7
    wait(full, 0);
#endif
    out[(row * 2 + column) * 64 + t] = A[t] + B[t];
#if BUG != 6
    CLUSTER_SYNC();
#endif
}
