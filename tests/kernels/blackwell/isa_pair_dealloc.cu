// Each CTA of a pair frees its columns when its own warps are done, and the peer may still use its own (T6).
// launch: grid=2 block=128 arch=sm_100a
// arg: out f32[256,64]=zeros
// policy: isa
// expect: data-race @load @free severity=warning
// allow: data-race @store @free severity=warning
// result: out = np.tile(np.repeat(np.arange(8, dtype=np.float32), 8), (256, 1))
#include "../blackwell_pair.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(float* out) {
    __shared__ u32 base;
    cluster_sync();
    for (u32 round = 0; round < 2; ++round) {
        if (threadIdx.x < 32) alloc_pair(base, COLUMNS);
        __syncthreads();
        u32 at = base, own = own_lanes(at);
        for (u32 column = 0; column < COLUMNS; column += 8) {
            float v[8];
            for (float& each : v) each = column / 8;
            store(own + column, v);  /*@store*/
            wait_stores();
            load(v, own + column);  /*@load*/
            wait_loads();
            put(out + blockIdx.x * 128 * COLUMNS, column, v);
        }
        fence_before_sync();
#ifdef RACY
        __syncthreads();
#else
        cluster_sync();
#endif
        fence_after_sync();
        if (threadIdx.x < 32) dealloc_pair(at, COLUMNS);  /*@free*/
    }
}
