// Sums of rows that come in by one-dimensional bulk copies: a producer warp, a ring of mbarriers, and results that go out by bulk copy.
#include <cuda/barrier>
#include <cuda/ptx>

constexpr int COLUMNS = 256, STAGES = 3, READERS = 128;

extern "C" __global__ void __launch_bounds__(READERS + 32) bulk_pipeline(const float* in, float* out, int rows) {
    namespace ptx = cuda::ptx;
    __shared__ alignas(128) float ring[STAGES][COLUMNS];
    __shared__ alignas(128) float result[READERS];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    in += static_cast<size_t>(blockIdx.x) * rows * COLUMNS;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            ptx::mbarrier_init(&full[stage], 1);
            ptx::mbarrier_init(&empty[stage], READERS);
        }
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    if (threadIdx.x >= READERS) {
        if (threadIdx.x != READERS) return;
        for (int row = 0; row < rows; row++) {
            const int stage = row % STAGES;
            while (!ptx::mbarrier_try_wait_parity(&empty[stage], (row / STAGES & 1) ^ 1)) {}
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[stage], sizeof(ring[0]));
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, ring[stage], in + row * COLUMNS, sizeof(ring[0]), &full[stage]);
        }
        return;
    }
    float sum = 0;
    for (int row = 0; row < rows; row++) {
        const int stage = row % STAGES;
        while (!ptx::mbarrier_try_wait_parity(&full[stage], row / STAGES & 1)) {}
        sum += ring[stage][threadIdx.x] + ring[stage][threadIdx.x + READERS];
        ptx::mbarrier_arrive(&empty[stage]);
    }
    result[threadIdx.x] = sum;
    ptx::fence_proxy_async(ptx::space_shared);
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + blockIdx.x * READERS, result, sizeof(result));
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}
