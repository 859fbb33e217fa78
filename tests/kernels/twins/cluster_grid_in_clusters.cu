// The same in a kernel whose grid is counted in clusters where CUDA launches it: a grid here is one of CTAs.
// launch: grid=4 block=64 arch=sm_90
// arg: out f32[256]=zeros
// expect: data-race RAW @store @read severity=error
// allow: uninitialized-read @read
// result: out = np.tile(np.concatenate([np.arange(64) + 100, np.arange(64)]), 2)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __block_size__((64, 1, 1), (2, 1, 1)) kernel(float* out) {
    __shared__ float mine[64];
    u32 t = threadIdx.x, rank = cluster_rank();
    CLUSTER_SYNC_RELAXED();  // both have started
    mine[t] = float(t + 100 * rank);  /*@store*/
#ifdef RACY
    __syncthreads();
#else
    CLUSTER_SYNC();
#endif
    float value;
    GET(value, peer(mine + t, rank ^ 1));  /*@read*/
    CLUSTER_SYNC_RELAXED();  // neither ends before the other has read
    out[blockIdx.x * 64 + t] = value;
}
