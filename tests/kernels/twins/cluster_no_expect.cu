// The CTA that receives a tile does not expect its bytes: nobody arrives at its barrier, and it waits for ever.
// Not run on a chip: it would wait there.
// backends: cpu
// expect: deadlock @wait severity=error
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[4,64]=arange
// arg: out f32[2,64]=zeros
// result: out = np.tile(x.sum(0), (2, 1))
#include "../mbarrier.cuh"
#include "../cluster.cuh"
enum { STAGES = 2, STEPS = 4 };
extern "C" __global__ void __cluster_dims__(2) kernel(const float* x, float* out) {
    __shared__ __align__(128) float tile[STAGES][64];
    __shared__ u64 full[STAGES], empty[STAGES];
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) {
            INIT(&full[s], 1);
            INIT(&empty[s], 2);
        }
        FENCE_INIT();
    }
    CLUSTER_SYNC_RELAXED();
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < STEPS; k++) {
        int s = k % STAGES, round = k / STAGES;
        if (t == 0) {
            if (rank == 0 && round) WAIT_CLUSTER(&empty[s], (round - 1) & 1);
#ifdef RACY
            if (rank == 0) ARRIVE_EXPECT(&full[s], 256);
#else
            ARRIVE_EXPECT(&full[s], 256);
#endif
            if (rank == 0) MULTICAST(tile[s], x + 64 * k, 256, &full[s], 3);
        }
        WAIT(&full[s], round & 1);  /*@wait*/
        sum += tile[s][t];
        __syncthreads();
        if (t == 0) ARRIVE_THERE(peer(&empty[s], 0));
    }
    CLUSTER_SYNC_RELAXED();
    out[blockIdx.x * 64 + t] = sum;
}
