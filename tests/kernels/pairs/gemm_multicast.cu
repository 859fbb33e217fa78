// Cluster of 2: each CTA loads half of the shared B tile and multicasts it; A is its own. Consumers release the stages of both CTAs.
// launch: grid=2 block=160 arch=sm_90a
// arg: a f16[2,6,1024]=random
// arg: b f16[6,128]=random
// arg: out f32[2,64,8]=zeros
// bug 1: data-race|missing-wait consumers release only their own CTA's stage
// bug 2: deadlock|barrier-misuse|missing-wait the expected bytes are half of B only
// bug 3: lifetime no cluster barrier at the end
// bug 4: lifetime|barrier-misuse no cluster barrier after the init
// bug 5: missing-wait|data-race empty count 1 in place of 2
// bug 6: scope|missing-wait|data-race the remote arrival is relaxed
// bug 7: missing-wait arrival before the wait for the product
#include "../mbarrier.cuh"
#include "../cluster.cuh"
#include "../hopper.cuh"
enum { STAGES = 2, TILES = 6 };
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(160) kernel(const f16* a, const f16* b, float* out) {
    __shared__ __align__(128) f16 A[STAGES][1024], B[STAGES][128];
    __shared__ __align__(8) u64 full[STAGES], empty[STAGES];
    const u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) {
            INIT(&full[s], 1);
#if BUG == 5
            INIT(&empty[s], 1);
#else
            INIT(&empty[s], 2);
#endif
        }
        FENCE_INIT();
    }
#if BUG == 4
    __syncthreads();
#else
    CLUSTER_SYNC();
#endif
    if (t >= 128) {
        if (t == 128) {
#pragma unroll 1
            for (int k = 0; k < TILES; k++) {
                int s = k % STAGES;
                WAIT_CLUSTER(&empty[s], (k / STAGES & 1) ^ 1);
#if BUG == 2
                ARRIVE_EXPECT(&full[s], 2048 + 128);
#else
                ARRIVE_EXPECT(&full[s], 2048 + 256);
#endif
                BULK_LOAD(A[s], a + (rank * TILES + k) * 1024, 2048, &full[s]);
                MULTICAST(&B[s][rank * 64], b + k * 128 + rank * 64, 128, &full[s], 3);
            }
        }
    } else {
        float d[4] = {};
#pragma unroll 1
        for (int k = 0; k < TILES; k++) {
            int s = k % STAGES;
            WAIT_CLUSTER(&full[s], k / STAGES & 1);
            keep(d);
            wgmma_fence();
            multiply(d, operand(A[s]), operand(B[s]), k != 0);
            wgmma_commit();
#if BUG != 7
            wgmma_wait<0>();
#endif
#if BUG == 1
            if (t < 2) ARRIVE_THERE(peer(&empty[s], rank));
#elif BUG == 6
            if (t < 2) ARRIVE_THERE_RELAXED(peer(&empty[s], t));
#else
            if (t < 2) ARRIVE_THERE(peer(&empty[s], t));
#endif
#if BUG == 7
            wgmma_wait<0>();
#endif
            keep(d);
        }
        write_result(out + rank * 512, d);
    }
#if BUG != 3
    CLUSTER_SYNC();
#endif
}
