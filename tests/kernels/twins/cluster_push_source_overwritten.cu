// A bulk copy from this CTA's shared memory to the peer's: the source is free again when the peer has told so, who alone is signalled.
// launch: grid=2 block=64 arch=sm_90
// arg: out f32[2,64]=zeros
// expect: missing-wait WAR @copy @store severity=error
// result: out = np.stack([-np.arange(64), np.arange(64) + 5])
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ __align__(128) float from[64], to[64];
    __shared__ u64 full, taken;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        INIT(&taken, 64);
        FENCE_INIT();
        ARRIVE_EXPECT(&full, rank ? sizeof to : 0);
    }
    from[t] = float(t + 5);
    FENCE_PROXY();
    CLUSTER_SYNC();
    if (rank == 0) {
        if (t == 0) PUSH(peer(to, 1), from, sizeof from, peer(&full, 1));  /*@copy*/
        __syncthreads();
#ifndef RACY
        WAIT_CLUSTER(&taken, 0);
#endif
        from[t] = -float(t);  /*@store*/
        out[t] = from[t];
    } else {
        WAIT(&full, 0);
        out[64 + t] = to[t];
        ARRIVE_THERE(peer(&taken, 0));
    }
    CLUSTER_SYNC_RELAXED();
}
