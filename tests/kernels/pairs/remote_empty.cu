// A leader CTA loads for a cluster of 2 by multicast; consumers of both arrive at the leader's empty barrier (mapa), count in arrivals.
// launch: grid=2 block=96 arch=sm_90
// arg: x f32[6,128]=random
// arg: out f32[2,64]=zeros
// bug 1: data-race|missing-wait|barrier-misuse empty counts 1: one CTA's consumers free the stage
// bug 2: deadlock empty counts 4, two arrive
// bug 3: data-race|missing-wait|deadlock consumers arrive at their own barrier
// bug 4: missing-wait|deadlock|barrier-misuse the follower does not expect bytes
// bug 5: lifetime the follower exits early: no cluster barrier at the end; the leader arrives late
// bug 6: scope|missing-wait|data-race warn arrival of cta scope
// bug 7: deadlock|missing-wait|data-race|barrier-misuse follower's parity starts at 1
// bug 8: missing-wait|data-race the consumers arrive before they read
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(96) kernel(const float* x, float* out) {
    __shared__ alignas(128) float stage[2][128];
    __shared__ alignas(8) u64 full[2], empty[2];
    const u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        for (int s = 0; s < 2; s++) {
            INIT(&full[s], 1);
            INIT(&empty[s], BUG == 1 ? 1 : BUG == 2 ? 8 : 4);
        }
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    if (t >= 64) {
        if (t == 64) {
#pragma unroll 1
            for (int k = 0; k < 6; k++) {
                int s = k % 2;
                // Both announce their bytes, the leader sends.
#if BUG == 4
                if (rank == 0)
#endif
                if (k < 2 || rank == 0) WAIT_CLUSTER(&empty[s], (k / 2 & 1) ^ 1);
                if (rank == 0) {
                    ARRIVE_EXPECT_THERE(peer(&full[s], 0), 512);
#if BUG != 4
                    ARRIVE_EXPECT_THERE(peer(&full[s], 1), 512);
#endif
                    MULTICAST(stage[s], x + k * 128, 512, &full[s], 3);
                }
            }
        }
    } else {
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < 6; k++) {
            int s = k % 2;
#if BUG == 7
            WAIT_CLUSTER(&full[s], (k / 2 & 1) ^ rank);
#else
            WAIT_CLUSTER(&full[s], k / 2 & 1);
#endif
#if BUG == 8
            if (t % 32 == 0) ARRIVE_THERE(peer(&empty[s], 0));
#endif
            sum += stage[s][t] + stage[s][t + 64];
            __syncwarp();
#if BUG == 3
            if (t % 32 == 0) ARRIVE_THERE(peer(&empty[s], rank));
#elif BUG == 6
            if (t % 32 == 0) ARRIVE_THERE_CTA(peer(&empty[s], 0));
#elif BUG != 8
            if (t % 32 == 0) ARRIVE_THERE(peer(&empty[s], 0));
#endif
        }
        out[rank * 64 + t] = sum;
    }
#if BUG != 5
    CLUSTER_SYNC();
#endif
}
