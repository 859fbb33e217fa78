// cuda::pipeline of block scope: unified, and partitioned into producers and consumers, as the CUDA programming guide has it.
// launch: grid=2 block=128 arch=sm_80
// arg: x f32[2,6,128]=random
// arg: out f32[2,64]=zeros
// result: out = x.reshape(2, 6, 2, 64)[..., ::-1].sum((1, 2))
// bug 1: missing-wait|data-race|barrier-misuse consumer_wait missing
// bug 2: data-race|missing-wait|barrier-misuse|deadlock consumer_release before the read
// bug 3: missing-wait|data-race|barrier-misuse|deadlock producer_acquire missing
// bug 4: missing-wait|data-race the commit comes before the copy
// bug 5: deadlock consumer_release missing
// bug 6: data-race|missing-wait memcpy_async of another stage than acquired
#include <cooperative_groups.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
extern "C" __global__ void __launch_bounds__(128) kernel(const float* x, float* out) {
    __shared__ alignas(16) float ring[2][128];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    const int t = threadIdx.x;
    auto role = t < 64 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    const float* mine = x + blockIdx.x * 768;
    if (t < 64) {
        for (int k = 0; k < 6; k++) {
#if BUG != 3
            pipe.producer_acquire();
#endif
#if BUG == 4
            pipe.producer_commit();
#endif
            int s = BUG == 6 ? (k + 1) % 2 : k % 2;
            cuda::memcpy_async(&ring[s][t * 2], mine + k * 128 + t * 2, cuda::aligned_size_t<8>(8), pipe);
#if BUG != 4
            pipe.producer_commit();
#endif
        }
    } else {
        float sum = 0;
        for (int k = 0; k < 6; k++) {
#if BUG != 1
            pipe.consumer_wait();
#endif
#if BUG == 2
            pipe.consumer_release();
#endif
            sum += ring[k % 2][127 - t] + ring[k % 2][191 - t];
#if BUG != 2 && BUG != 5
            pipe.consumer_release();
#endif
        }
        out[blockIdx.x * 64 + t - 64] = sum;
    }
}
