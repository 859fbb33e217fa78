// Each CTA of a cluster adds up its part, and one adds up their sums, which it reads where they are.
// launch: grid=8 block=64 arch=sm_90
// arg: x f32[8,64]=random
// arg: out f32[2]=zeros
// result: out = x.reshape(2, -1).sum(1)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4) kernel(const float* x, float* out) {
    __shared__ float part[64];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned t = threadIdx.x;
    part[t] = x[blockIdx.x * 64 + t];
    for (unsigned half = 32; half; half /= 2) {
        __syncthreads();
        if (t < half) part[t] += part[t + half];
    }
    cluster.sync();
    if (cluster.block_rank() == 0 && t == 0) {
        float sum = 0;
        for (unsigned r = 0; r < cluster.num_blocks(); r++) sum += *cluster.map_shared_rank(part, r);
        out[blockIdx.x / 4] = sum;
    }
    cluster.sync();  // nobody leaves while its sum is read
}
