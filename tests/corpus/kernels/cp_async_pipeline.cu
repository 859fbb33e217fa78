// Moving average over tiles that a three-stage cp.async pipeline brings in; the tail is zero-filled by the copy itself.
#include <cuda_pipeline.h>

constexpr int THREADS = 128, STAGES = 3, VALUES = THREADS * 4;

extern "C" __global__ void __launch_bounds__(THREADS) cp_async_pipeline(const float* in, float* out, int n)
{
    extern __shared__ float4 ring[];
    auto fetch = [&](int tile) {
        const int first = tile * VALUES + threadIdx.x * 4;
        const int left = min(max(n - first, 0), 4);
        if (left > 0)
            __pipeline_memcpy_async(&ring[tile % STAGES * THREADS + threadIdx.x], in + first, 16, (4 - left) * 4);
        else
            ring[tile % STAGES * THREADS + threadIdx.x] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __pipeline_commit();
    };
    const int tiles = (n + VALUES - 1) / VALUES;
    for (int tile = 0; tile < STAGES - 1; ++tile)
        if (tile < tiles) fetch(tile); else __pipeline_commit();
    for (int tile = 0; tile < tiles; ++tile) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        const float* values = reinterpret_cast<const float*>(&ring[tile % STAGES * THREADS]);
        for (int i = threadIdx.x; i < VALUES; i += THREADS) {
            const float sum = values[i] + values[(i + 1) % VALUES] + values[(i + 2) % VALUES];
            if (tile * VALUES + i < n) out[tile * VALUES + i] = sum / 3.0f;
        }
        if (tile + STAGES - 1 < tiles) fetch(tile + STAGES - 1); else __pipeline_commit();
    }
    __pipeline_wait_prior(0);
}
