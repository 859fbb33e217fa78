// A CTA that does not follow the parity of its barrier: in the second round it asks for a phase that is over, or, later,
// for one that never ends, and gives up.
// expect: missing-wait|data-race @load @read severity=error
// allow: data-race @load @read
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
            ARRIVE_EXPECT(&full[s], 256);
            if (rank == 0) MULTICAST(tile[s], x + 64 * k, 256, &full[s], 3);  /*@load*/
        }
#ifdef RACY
        if (rank == 0 || round == 0) WAIT(&full[s], round & 1);
        else POLL_A_WHILE(&full[s], 0);
#else
        WAIT(&full[s], round & 1);
#endif
        sum += tile[s][t];  /*@read*/
        __syncthreads();
        if (t == 0) ARRIVE_THERE(peer(&empty[s], 0));
    }
    for (int s = 0; s < STAGES; s++) WAIT(&full[s], 1);  // no copy is in flight when a CTA ends
    CLUSTER_SYNC_RELAXED();
    out[blockIdx.x * 64 + t] = sum;
}
