// Cluster of 4: a row of softmax split over CTAs; maxima and sums exchanged through DSMEM.
// launch: grid=8 block=64 arch=sm_90
// arg: x f32[2,256]=random
// arg: y f32[2,256]=zeros
// result: y = np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
// bug 1: data-race no cluster barrier before the maxima are read
// bug 2: lifetime no cluster barrier at the end
// bug 3: clean the sums go into the slots of the maxima, behind a barrier of the CTA that read them
// bug 4: data-race cluster.barrier_arrive before the write
// bug 5: lifetime|data-race push to a peer that may not have started
// bug 6: data-race __syncthreads in place of cluster.sync
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4) kernel(const float* x, float* y) {
    __shared__ float most[4], sums[4], scratch[2];
    auto cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank(), t = threadIdx.x, row = blockIdx.x / 4;
    float v = x[row * 256 + rank * 64 + t];
    float m = v;
    for (int d = 16; d; d >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    if (t % 32 == 0) scratch[t / 32] = m;
    __syncthreads();
#if BUG != 5
    cluster.sync();
#endif
#if BUG == 4
    cluster.barrier_arrive();
#endif
    if (t < 4) cluster.map_shared_rank(most, t)[rank] = fmaxf(scratch[0], scratch[1]);
#if BUG == 4
    cluster.barrier_wait();
#elif BUG == 6
    __syncthreads();
#elif BUG != 1
    cluster.sync();
#endif
    m = fmaxf(fmaxf(most[0], most[1]), fmaxf(most[2], most[3]));
    float e = __expf(v - m), s = e;
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
    __syncthreads();
    if (t % 32 == 0) scratch[t / 32] = s;
    __syncthreads();
#if BUG == 3
    float* slot = most;
#else
    float* slot = sums;
#endif
    if (t == 0) slot[rank] = scratch[0] + scratch[1];
    cluster.sync();
    s = 0.f;
    for (int r = 0; r < 4; r++) s += cluster.map_shared_rank(slot, r)[r];
#if BUG != 2
    cluster.sync();
#endif
    y[row * 256 + rank * 64 + t] = e / s;
}
