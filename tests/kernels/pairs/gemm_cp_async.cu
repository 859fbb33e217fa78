// 64x64x(K=128) tf32-like SGEMM on CUDA cores, 3-stage cp.async ring, epilogue staged through the ring.
// launch: grid=2 block=128 smem=24576
// arg: a f32[128,128]=random
// arg: b f32[128,64]=random
// arg: c f32[128,64]=zeros
// result: c = a @ b
// bug 1: missing-wait wait_group 2 in place of 1
// bug 2: data-race|missing-wait no barrier after the wait
// bug 3: missing-wait|data-race prefetch into the stage that is being read
// bug 4: missing-wait|data-race epilogue reuses stage 0 without draining
// bug 5: missing-wait commit missing in the last iterations
// bug 6: clean A and B in groups apart: the wait covers more than it must
// bug 7: data-race no barrier before the epilogue
// bug 8: data-race epilogue reads the transposed tile without a barrier
// bug 9: clean wait_all at the end and padding
#define STAGES 3
#define BK 16
__device__ __forceinline__ void cp16(float* s, const float* g) {
    unsigned a = (unsigned)__cvta_generic_to_shared(s);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(a), "l"(g));
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;"); }
template <int N> __device__ __forceinline__ void waitg() { asm volatile("cp.async.wait_group %0;" ::"n"(N)); }
extern "C" __global__ void __launch_bounds__(128) kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
    extern __shared__ __align__(16) float smem[];
    float(*As)[64][BK] = reinterpret_cast<float(*)[64][BK]>(smem);                           // 3 x 4 KB
    float(*Bs)[BK][64] = reinterpret_cast<float(*)[BK][64]>(smem + STAGES * 64 * BK);         // 3 x 4 KB
    const int t = threadIdx.x, tx = t % 16, ty = t / 16, m0 = blockIdx.x * 64;
    float acc[8][4] = {};
    auto load = [&](int stage, int k0) {
        for (int i = t; i < 64 * BK / 4; i += 128) cp16(&As[stage][i / 4][i % 4 * 4], a + (m0 + i / 4) * 128 + k0 + i % 4 * 4);
#if BUG == 6
        commit();
#endif
        for (int i = t; i < BK * 64 / 4; i += 128) cp16(&Bs[stage][i / 16][i % 16 * 4], b + (k0 + i / 16) * 64 + i % 16 * 4);
    };
    const int iters = 128 / BK;
    for (int s = 0; s < STAGES - 1; s++) load(s, s * BK), commit();
#pragma unroll 1
    for (int k = 0; k < iters; k++) {
#if BUG == 1
        waitg<STAGES - 1>();
#else
        waitg<STAGES - 2>();
#endif
#if BUG != 2
        __syncthreads();
#endif
        int next = k + STAGES - 1;
#if BUG == 3
        if (next < iters) load(k % STAGES, next * BK);
#else
        if (next < iters) load(next % STAGES, next * BK);
#endif
#if BUG == 5
        if (next < iters) commit();
#else
        commit();
#endif
        int s = k % STAGES;
        for (int kk = 0; kk < BK; kk++)
            for (int i = 0; i < 8; i++)
                for (int j = 0; j < 4; j++) acc[i][j] += As[s][ty * 8 + i][kk] * Bs[s][kk][tx * 4 + j];
    }
#if BUG != 4
    waitg<0>();
#endif
#if BUG != 7
    __syncthreads();
#endif
#if BUG == 4
    // Copies of a last prefetch may still be on their way.
    load(0, 0), commit();
#endif
    float(*out)[64] = reinterpret_cast<float(*)[64]>(smem);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 4; j++) out[ty * 8 + i][tx * 4 + j] = acc[i][j];
#if BUG != 8
    __syncthreads();
#endif
    for (int i = t; i < 64 * 16; i += 128)
        reinterpret_cast<float4*>(c)[(m0 + i / 16) * 16 + i % 16] = *reinterpret_cast<float4*>(&out[i / 16][i % 16 * 4]);
#if BUG == 4
    waitg<0>();
#endif
}
