// cuda::pipeline and cuda::barrier from libcu++: two stages shared by the CTA, memcpy_async, and a split arrive and wait.
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;
constexpr int THREADS = 128, STAGES = 2;

extern "C" __global__ void __launch_bounds__(THREADS) cuda_pipeline_object(const int* in, int* out, int tiles)
{
    __shared__ int buffer[STAGES][THREADS];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    __shared__ cuda::barrier<cuda::thread_scope_block> arrived;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&arrived, THREADS);
    block.sync();

    auto pipeline = cuda::make_pipeline(block, &state);
    for (int fetch = 0, tile = 0; tile < tiles; ++tile) {
        for (; fetch < tiles && fetch < tile + STAGES; ++fetch) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, buffer[fetch % STAGES], in + fetch * THREADS, sizeof(int) * THREADS, pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        out[tile * THREADS + threadIdx.x] = buffer[tile % STAGES][(threadIdx.x + 1) % THREADS];
        pipeline.consumer_release();
    }
    auto token = arrived.arrive();
    arrived.wait(std::move(token));
}
