// Four CTAs in two pairs: CTA 0 loads for itself and CTA 1, CTA 2 for itself and CTA 3. CTAs 1 and 3 hand their stages back
// to the wrong one of the two: who loads then knows of the other pair's readers.
// launch: grid=4 block=64 arch=sm_90
// arg: x f32[4,64]=arange
// arg: out f32[4,64]=zeros
// expect: data-race WAR @read @load severity=error
// allow: missing-wait WAW @load @load
// result: out = np.tile(x.sum(0), (4, 1))
#include "../mbarrier.cuh"
#include "../cluster.cuh"
enum { STAGES = 2, STEPS = 4 };
extern "C" __global__ void __cluster_dims__(4) kernel(const float* x, float* out) {
    __shared__ __align__(128) float tile[STAGES][64];
    __shared__ u64 full[STAGES], empty[STAGES];
    u32 t = threadIdx.x, rank = cluster_rank(), leader = rank & ~1;
#ifdef RACY
    u32 owner = rank & 1 ? leader ^ 2 : leader;
#else
    u32 owner = leader;
#endif
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) {
            INIT(&full[s], 1);
            ARRIVE_EXPECT(&full[s], 256);
            INIT(&empty[s], 2);
        }
        FENCE_INIT();
    }
    CLUSTER_SYNC_RELAXED();
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < STEPS; k++) {
        int s = k % STAGES, round = k / STAGES;
        if (t == 0 && rank == leader) {
            if (round) WAIT_CLUSTER(&empty[s], (round - 1) & 1);
            MULTICAST(tile[s], x + 64 * k, 256, &full[s], 3 << leader);  /*@load*/
        }
        WAIT(&full[s], round & 1);
        if (t == 0 && k + STAGES < STEPS) ARRIVE_EXPECT(&full[s], 256);
        sum += tile[s][t];  /*@read*/
        __syncthreads();
        if (t == 0) ARRIVE_THERE(peer(&empty[s], owner));
    }
    CLUSTER_SYNC_RELAXED();
    out[rank * 64 + t] = sum;
}
