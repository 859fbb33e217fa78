// Two tiles through one buffer in each CTA. The second CTA hands its buffer back before its epilogue, which goes on using it; the CTA
// that loads for both then overwrites it.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[2,64]=arange
// arg: out f32[2,2,64]=zeros
// expect: data-race|missing-wait WAR @epilogue @load severity=error
// result: out = np.tile(x[:, ::-1], (2, 1, 1))
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(const float* x, float* out) {
    __shared__ __align__(128) float tile[64];
    __shared__ u64 full, empty;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, 2);
        FENCE_INIT();
    }
    CLUSTER_SYNC_RELAXED();
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        if (t == 0) {
            if (rank == 0 && k) WAIT_CLUSTER(&empty, 0);
            ARRIVE_EXPECT(&full, sizeof tile);
            if (rank == 0) MULTICAST(tile, x + 64 * k, sizeof tile, &full, 3);  /*@load*/
        }
        WAIT(&full, k);
#ifdef RACY
        __syncthreads();
        if (rank == 1 && t == 0) ARRIVE_THERE(peer(&empty, 0));
#endif
        out[(rank * 2 + k) * 64 + t] = tile[63 - t];  /*@epilogue*/
#ifdef RACY
        __syncthreads();
        if (rank == 0 && t == 0) ARRIVE_THERE(peer(&empty, 0));
#else
        __syncthreads();
        if (t == 0) ARRIVE_THERE(peer(&empty, 0));
#endif
    }
    CLUSTER_SYNC_RELAXED();
}
