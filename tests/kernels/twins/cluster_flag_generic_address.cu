// A flag in the peer's shared memory is set through a generic address, as map_shared_rank() gives: it releases like any other.
// launch: grid=2 block=32 arch=sm_90
// arg: out f32[32]=zeros
// expect: data-race RAW @store @read severity=error
// result: out = np.arange(32)[::-1]
#include "../mbarrier.cuh"
#include "../cluster.cuh"
#ifdef RACY
#define ORDER "relaxed"
#else
#define ORDER "release"
#endif
extern "C" __global__ void __cluster_dims__(2) kernel(float* out) {
    __shared__ float box[32];
    __shared__ u32 flag;
    u32 t = threadIdx.x, seen = 0;
    if (t == 0) flag = 0;
    CLUSTER_SYNC();
    if (cluster_rank() == 0) {
        u64 there;
        asm volatile("mapa.u64 %0, %1, 1;" : "=l"(there) : "l"(&flag));
        PUT(peer(&box[t], 1), (float)t);  /*@store*/
        __syncwarp();
        if (t == 0) asm volatile("st." ORDER ".cluster.u32 [%0], 1;" :: "l"(there) : "memory");
    } else {
        while (!seen) GET_FLAG(seen, shared(&flag));
        out[t] = box[31 - t];  /*@read*/
    }
    CLUSTER_SYNC();
}
