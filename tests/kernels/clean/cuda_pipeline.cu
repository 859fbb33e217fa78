// cuda::pipeline from libcu++: one that the CTA shares, of two stages, with a producer warp and consumers.
// launch: grid=1 block=128 arch=sm_90
// arg: x i32[1024]=arange
// arg: out i32[96]=zeros
// arg: tiles i32=8
// result: out = x.reshape(8, 128)[:, 32:][:, ::-1].sum(axis=0)
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void kernel(const int* x, int* out, int tiles) {
    __shared__ int buffer[2][128];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    int t = threadIdx.x;
    auto role = t < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipeline = cuda::make_pipeline(block, &state, role);
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < tiles; k++) {
        if (t < 32) {
            pipeline.producer_acquire();
            cuda::memcpy_async(&buffer[k % 2][4 * t], x + 128 * k + 4 * t, cuda::aligned_size_t<16>(16), pipeline);
            pipeline.producer_commit();
        } else {
            pipeline.consumer_wait();
            sum += buffer[k % 2][159 - t];
            pipeline.consumer_release();
        }
    }
    if (t >= 32) out[t - 32] = sum;
}
