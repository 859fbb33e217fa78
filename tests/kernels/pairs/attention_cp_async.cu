// Attention, one head, Br=32, Bc=32, D=32: Q once, K double-buffered, V single, separate commit groups.
// launch: grid=1 block=64
// arg: q f32[32,32]=random
// arg: k f32[128,32]=random
// arg: v f32[128,32]=random
// arg: o f32[32,32]=zeros
// bug 1: missing-wait waits for the newest-but-one before S=QK: K is waited for, V not before PV
// bug 2: missing-wait|data-race V is refilled while other warps still read it
// bug 3: missing-wait K next is loaded into the buffer in use
// bug 4: missing-wait wait 1 at the last tile, where only one group is in flight
#include <cuda_pipeline_primitives.h>
extern "C" __global__ void kernel(const float* q, const float* k, const float* v, float* o) {
    __shared__ __align__(16) float Q[32][32], K[2][32][32], V[32][32], P[32][33];
    const int t = threadIdx.x, row = t / 2, half = t % 2;
    auto load = [&](float(*to)[32], const float* from) {
        for (int i = t; i < 256; i += 64) __pipeline_memcpy_async(&to[i / 8][i % 8 * 4], from + i * 4, 16);
    };
    float m = -1e30f, l = 0.f, acc[16] = {};
    load(Q, q), load(K[0], k);
    __pipeline_commit();
    const int tiles = 4;
    for (int j = 0; j < tiles; j++) {
#if BUG == 2
        load(V, v + j * 1024);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
#else
        __syncthreads();  // V of the last round is free
        load(V, v + j * 1024);
        __pipeline_commit();
        __pipeline_wait_prior(1);  // K[j]
        __syncthreads();
#endif
        if (j + 1 < tiles) {
#if BUG == 3
            load(K[j & 1], k + (j + 1) * 1024);
#else
            load(K[(j + 1) & 1], k + (j + 1) * 1024);
#endif
            __pipeline_commit();
        }
        float s[16], top = m;
        for (int c = 0; c < 16; c++) {
            float sum = 0.f;
            for (int d = 0; d < 32; d++) sum += Q[row][d] * K[j & 1][half * 16 + c][d];
            s[c] = sum * 0.01f;
            top = fmaxf(top, s[c]);
        }
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
        float scale = __expf(m - top), part = 0.f;
        for (int c = 0; c < 16; c++) {
            float p = __expf(s[c] - top);
            P[row][half * 16 + c] = p;
            part += p;
        }
        l = l * scale + part + __shfl_xor_sync(~0u, part, 1);
        m = top;
#if BUG != 1
#if BUG == 4
        __pipeline_wait_prior(1);
#else
        if (j + 1 < tiles) __pipeline_wait_prior(1);
        else __pipeline_wait_prior(0);
#endif
#endif
        __syncthreads();
        for (int d = 0; d < 16; d++) {
            float sum = acc[d] * scale;
            for (int c = 0; c < 32; c++) sum += P[row][c] * V[c][half * 16 + d];
            acc[d] = sum;
        }
    }
    for (int d = 0; d < 16; d++) o[row * 32 + half * 16 + d] = acc[d] / l;
}
