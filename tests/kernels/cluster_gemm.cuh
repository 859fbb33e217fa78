// A matrix product in clusters of M x N CTAs. Those of a row share a tile of A, those of a column a tile of B: each CTA loads a part of
// both and sends it to all that share it, and all that it sends to hand their stages back to it. One warp loads, four multiply.
#include "hopper.cuh"
#include "cluster.cuh"
#ifndef RELEASE
#define RELEASE ARRIVE_THERE
#endif
enum { STAGES = 2, STEPS = 4, SENDERS = M + N - 1 };

INLINE void wait_cluster(u64& barrier, u32 parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(shared(&barrier)), "r"(parity) : "memory");
}
INLINE void tensor_multicast(void* to, const TensorMap& map, int x, int y, u64& barrier, u32 mask) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                 ::"r"(shared(to)), "l"(&map), "r"(x), "r"(y), "r"(shared(&barrier)), "h"((unsigned short)mask) : "memory");
}

extern "C" __global__ void __cluster_dims__(M, N) kernel(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* out) {
    __shared__ alignas(128) f16 left[STAGES][64 * 16], right[STAGES][8 * 16];
    __shared__ u64 full[STAGES], empty[STAGES];
    u32 t = threadIdx.x, rank = cluster_rank(), m = rank % M, n = rank / M, row = 0, column = 0;
    for (u32 i = 0; i < N; i++) row |= 1 << (m + M * i);
    for (u32 i = 0; i < M; i++) column |= 1 << (i + M * n);
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) {
            init(full[s], 1);
            init(empty[s], 4 * SENDERS);
        }
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    if (t == 128) {
#pragma unroll 1
        for (int k = 0; k < STEPS; k++) {
            int s = k % STAGES;
            wait_cluster(empty[s], k / STAGES & 1 ^ 1);
            expect(full[s], A_BYTES + B_BYTES);
            for (u32 half = 0; half < 2; half++) {  // 8 columns at a time
                if (half % N == n % N) tensor_multicast(left[s] + half * 512, a, k * 16 + half * 8, blockIdx.x * 64, full[s], row);
                if (half % M == m) tensor_multicast(right[s] + half * 64, b, k * 16 + half * 8, blockIdx.y * 8, full[s], column);
            }
        }
    } else if (t < 128) {
        float d[4];
#pragma unroll 1
        for (int k = 0; k < STEPS; k++) {
            int s = k % STAGES;
            wait(full[s], k / STAGES & 1);
            wgmma_fence();
            multiply(d, descriptor(shared(left[s]), 1024, 128, 0), descriptor(shared(right[s]), 128, 128, 0), k);
            wgmma_commit();
            wgmma_wait<0>();
            if (t % 32 == 0)
                for (u32 r = 0; r < M * N; r++)
                    if ((row | column) >> r & 1) RELEASE(peer(&empty[s], r));
        }
        write_result(out + (blockIdx.x * N + n) * 64 * 8, d);
    }
    __syncwarp();
    CLUSTER_SYNC_RELAXED();  // nobody ends before all that is sent to it, or signalled there, has come
}
