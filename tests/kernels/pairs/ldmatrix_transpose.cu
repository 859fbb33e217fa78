// A transpose of 32 x 32 halves for each warp: stmatrix, ldmatrix.trans, and both ways through __syncwarp.
// launch: grid=1 block=128 arch=sm_90
// arg: x u32[4,32,16]=arange
// arg: out u32[4,32,16]=zeros
// bug 1: data-race warn no __syncwarp between stmatrix and ldmatrix
// bug 2: data-race warn no __syncwarp before the next round overwrites
// bug 3: data-race|uninitialized-read warps read the tile of the next warp without a barrier
// bug 4: uninitialized-read only 3 of 4 matrices were stored
// bug 5: clean warps read the tile of the next warp behind __syncthreads
// bug 6: barrier-misuse ldmatrix in a branch of half a warp
// bug 7: out-of-bounds|uninitialized-read rows with a pitch that is too large
// bug 8: data-race warn the mask of __syncwarp names the lower half only, in both halves apart
#include "../hopper.cuh"
INLINE void stmatrix4(u32 to, const u32 (&v)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
}
INLINE void stmatrix2(u32 to, const u32 (&v)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(to), "r"(v[0]), "r"(v[1]) : "memory");
}
INLINE void ldmatrix4(u32 (&v)[4], u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(from) : "memory");
}
extern "C" __global__ void __launch_bounds__(128) kernel(const u32* x, u32* out) {
    __shared__ alignas(128) u32 tile[4][128];
    const u32 t = threadIdx.x, warp = t / 32, lane = t % 32;
    const u32 from = BUG == 3 || BUG == 5 ? (warp + 1) % 4 : warp;
#pragma unroll 1
    for (u32 k = 0; k < 4; k++) {
        u32 v[4], w[4];
        for (u32 i = 0; i < 4; i++) v[i] = x[(warp * 4 + k) * 128 + i * 32 + lane];
#if BUG == 4
        if (k == 0) stmatrix2(shared(tile[warp]) + lane % 16 * 16, v);
        else stmatrix4(shared(tile[warp]) + lane * 16, v);
#else
        stmatrix4(shared(tile[warp]) + lane * (BUG == 7 ? 48 : 16), v);
#endif
#if BUG == 5
        __syncthreads();
#elif BUG == 8
        if (lane < 16) __syncwarp(0xFFFF);
        else __syncwarp(0xFFFF0000);
#elif BUG != 1
        __syncwarp();
#endif
#if BUG == 6
        if (lane < 16) ldmatrix4(w, shared(tile[from]) + lane * 16);
        else w[0] = w[1] = w[2] = w[3] = 0;
#else
        ldmatrix4(w, shared(tile[from]) + (lane ^ 16) * 16);
#endif
#if BUG == 5
        __syncthreads();
#elif BUG != 2
        __syncwarp();
#endif
        for (u32 i = 0; i < 4; i++) out[(warp * 4 + k) * 128 + i * 32 + lane] = w[i];
    }
}
