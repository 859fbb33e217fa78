// R-CL: a CTA arrives at the barrier of the cluster, then scales its cells in the first step only; its peer reads one of them behind the wait.
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[128]=zeros
// arg: steps i32=3
// expect: data-race @scale @get severity=error
// result: out = np.repeat(np.array([4, 2], np.float32), 64)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out, int steps) {
    __shared__ float cells[2][64];
    u32 rank = cluster_rank(), t = threadIdx.x;
    float seen = 0;
    cells[0][t] = cells[1][t] = rank + 1.0f;
    for (int i = 0; i < steps; i++) {
#ifdef RACY
        CLUSTER_ARRIVE();
        if (i == 0) cells[0][t] *= 2;  /*@scale*/
        __syncthreads();
#else
        if (i == 0) cells[0][t] *= 2;
        __syncthreads();
        CLUSTER_ARRIVE();
#endif
        CLUSTER_WAIT();
        if (i % 2 == 0) GET(seen, peer(&cells[0][63 - t], rank ^ 1));  /*@get*/
    }
    CLUSTER_SYNC();
    out[rank * 64 + t] = seen;
}
