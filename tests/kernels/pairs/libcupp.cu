// cuda::pipeline per thread, cg::memcpy_async, cuda::barrier with memcpy_async, tiled partitions.
// launch: grid=2 block=128 arch=sm_80
// arg: x f32[2,8,128]=random
// arg: out f32[2,128]=zeros
// result: out = x.sum(1)[:, ::-1] + x[:, 0] + x[:, 1][:, ::-1]
// bug 1: missing-wait consumer_wait missing
// bug 2: data-race|missing-wait no block sync after consumer_wait
// bug 3: data-race|missing-wait consumer_release before the read (thread scope) and no sync
// bug 4: clean no cg::wait: the arrival at the barrier tracks all copies of the thread
// bug 5: missing-wait|data-race barrier's arrive_and_wait missing
// bug 6: clean wait_prior<1>, as 4
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(16) float ring[2][128], first[128], second[128];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    auto block = cg::this_thread_block();
    const int t = threadIdx.x;
    const float* mine = x + blockIdx.x * 1024;
    if (t == 0) init(&bar, 128);
    block.sync();
    cg::memcpy_async(block, first, mine, sizeof first);
    cuda::memcpy_async(block, second, mine + 128, sizeof second, bar);
#if BUG == 6
    cg::wait_prior<1>(block);
#elif BUG != 4
    cg::wait(block);
#endif
#if BUG != 5
    bar.arrive_and_wait();
#endif
    float sum = first[t ^ 1 ^ 1] + second[127 - t];
    auto pipe = cuda::make_pipeline();
    for (int k = 0; k < 2; k++) {
        pipe.producer_acquire();
        cuda::memcpy_async(&ring[k][t], mine + k * 128 + t, sizeof(float), pipe);
        pipe.producer_commit();
    }
    for (int k = 0; k < 8; k++) {
#if BUG != 1
        cuda::pipeline_consumer_wait_prior<1>(pipe);
#endif
#if BUG != 2
        block.sync();
#endif
        sum += ring[k & 1][127 - t];
#if BUG != 3
        block.sync();
#endif
        pipe.consumer_release();
        pipe.producer_acquire();
        if (k + 2 < 8) cuda::memcpy_async(&ring[k & 1][t], mine + (k + 2) * 128 + t, sizeof(float), pipe);
        pipe.producer_commit();
    }
    out[blockIdx.x * 128 + t] = sum;
}
