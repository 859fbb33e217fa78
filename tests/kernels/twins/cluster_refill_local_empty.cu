// The CTA that loads for both waits until its own threads have read a stage, not those of the other CTA.
// expect: data-race WAR @read @load severity=error
// allow: missing-wait WAW @load @load
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[4,64]=arange
// arg: out f32[2,64]=zeros
// result: out = np.tile(x.sum(0), (2, 1))
#include "../mbarrier.cuh"
#include "../cluster.cuh"
#ifdef RACY
enum { EMPTY = 1 };
#else
enum { EMPTY = 2 };
#endif
enum { STAGES = 2, STEPS = 4 };
extern "C" __global__ void __cluster_dims__(2) kernel(const float* x, float* out) {
    __shared__ __align__(128) float tile[STAGES][64];
    __shared__ u64 full[STAGES], empty[STAGES];
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) {
            INIT(&full[s], 1);
            ARRIVE_EXPECT(&full[s], 256);
            INIT(&empty[s], EMPTY);
        }
        FENCE_INIT();
    }
    CLUSTER_SYNC_RELAXED();
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < STEPS; k++) {
        int s = k % STAGES, round = k / STAGES;
        if (t == 0 && rank == 0) {
            if (round) WAIT_CLUSTER(&empty[s], (round - 1) & 1);
            MULTICAST(tile[s], x + 64 * k, 256, &full[s], 3);  /*@load*/
        }
        WAIT(&full[s], round & 1);
        if (t == 0 && k + STAGES < STEPS) ARRIVE_EXPECT(&full[s], 256);
        sum += tile[s][t];  /*@read*/
        __syncthreads();
#ifdef RACY
        if (t == 0 && rank == 0) ARRIVE(&empty[s]);
#else
        if (t == 0) ARRIVE_THERE(peer(&empty[s], 0));
#endif
    }
    CLUSTER_SYNC_RELAXED();
    out[blockIdx.x * 64 + t] = sum;
}
