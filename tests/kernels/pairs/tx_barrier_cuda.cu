// cuda::barrier with transactions (cuda::device::barrier_arrive_tx, cuda::memcpy_async tx) as in the CUDA programming guide's TMA section.
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[2,512]=random
// arg: y f32[2,512]=zeros
// result: y = x + 1
// bug 1: missing-wait|data-race bar.wait missing
// bug 2: deadlock only thread 0 arrives
// bug 3: missing-proxy-fence fence missing before the store
// bug 4: data-race|missing-proxy-fence|missing-wait __syncthreads missing before the store
// bug 5: lifetime|missing-wait bulk group is not waited for: shared memory dies
// bug 6: barrier-misuse|deadlock twice the bytes announced
// bug 7: barrier-misuse|missing-wait|data-race no __syncthreads behind init
// bug 9: clean barrier_expect_tx and an arrival apart
#include <cuda/barrier>
#include <cuda/ptx>
namespace ptx = cuda::ptx;
using barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void __launch_bounds__(64) kernel(const float* x, float* y) {
    __shared__ alignas(128) float tile[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bar;
    const int t = threadIdx.x;
    if (t == 0) {
        init(&bar, 64);
        cuda::device::experimental::fence_proxy_async_shared_cta();
    }
#if BUG != 7
    __syncthreads();
#endif
    for (int k = 0; k < 2; k++) {
        const float* from = x + blockIdx.x * 512 + k * 256;
        float* to = y + blockIdx.x * 512 + k * 256;
        barrier::arrival_token token;
        if (t == 0) {
            cuda::device::experimental::cp_async_bulk_global_to_shared(tile, from, sizeof tile, bar);
#if BUG == 9
            cuda::device::barrier_expect_tx(bar, sizeof tile);
            token = bar.arrive();
#else
            token = cuda::device::barrier_arrive_tx(bar, 1, BUG == 6 ? 2 * sizeof tile : sizeof tile);
#endif
        } else {
#if BUG == 2
            continue;
#else
            token = bar.arrive();
#endif
        }
#if BUG != 1
        bar.wait(std::move(token));
#endif
        for (int i = t; i < 256; i += 64) tile[i] += 1;
#if BUG != 3
        ptx::fence_proxy_async(ptx::space_shared);
#endif
#if BUG != 4
        __syncthreads();
#endif
        if (t == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, to, tile, sizeof tile);
            ptx::cp_async_bulk_commit_group();
#if BUG != 5
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
#endif
        }
#if BUG == 4
        __syncthreads();
#endif
    }
}
