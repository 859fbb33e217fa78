// A relaxed cluster barrier before and behind the use of a pair's columns, as DeepGEMM has them. For the columns that is enough (T21). The word
// of alloc is memory: to read it needs a release and an acquire.
// launch: grid=2 block=128 arch=sm_100a
// arg: out f32[256,64]=zeros
// expect: data-race @alloc @read severity=error
// result: out = np.tile(np.repeat(np.arange(8, dtype=np.float32), 8), (256, 1))
#include "../blackwell_pair.cuh"
INLINE void cluster_sync_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(float* out) {
    __shared__ u32 base;
    cluster_sync_relaxed();
    if (threadIdx.x < 32) alloc_pair(base, COLUMNS);  /*@alloc*/
#ifdef RACY
    cluster_sync_relaxed();
#else
    cluster_sync();
#endif
    u32 at = *(volatile u32*)&base, own = own_lanes(at);  /*@read*/
    for (u32 column = 0; column < COLUMNS; column += 8) {
        float v[8];
        for (float& each : v) each = column / 8;
        store(own + column, v);
        wait_stores();
        load(v, own + column);
        wait_loads();
        put(out + rank_in_cluster() * 128 * COLUMNS, column, v);
    }
    cluster_sync_relaxed();
    if (threadIdx.x < 32) dealloc_pair(at, COLUMNS);
}
