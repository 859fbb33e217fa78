// Each CTA of a pair multicasts its half of each tile to both. In the racy twin the readers of a tile tell only their own CTA that it is free, and
// the other CTA refills it while they still read.
// launch: grid=2 block=64 arch=sm_90a
// arg: x f32[256]=arange
// arg: out f32[2,32]=zeros
// expect: data-race WAR @read @load severity=error
// allow: missing-wait severity=error
// allow: barrier-misuse severity=error
// result: out = np.tile(x.reshape(8, 32)[:, ::-1].sum(axis=0), (2, 1))
#include "../mbarrier.cuh"
#include "../cluster.cuh"
#ifdef RACY
enum { READERS = 1 };
#else
enum { READERS = 2 };
#endif
extern "C" __global__ void __cluster_dims__(2) kernel(const float* x, float* out) {
    __shared__ __align__(128) float tile[32];
    __shared__ u64 full, empty;
    u32 t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, READERS);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    float sum = 0;
#pragma unroll 1
    for (u32 k = 0; k < 8; k++) {
        if (t == 0) {
            WAIT_CLUSTER(&empty, k & 1 ^ 1);
            ARRIVE_EXPECT(&full, 128);
            MULTICAST(&tile[rank * 16], x + k * 32 + rank * 16, 64, &full, 3);  /*@load*/
        } else if (t >= 32) {
            WAIT(&full, k & 1);
            sum += tile[63 - t];  /*@read*/
            __syncwarp();
            if (t == 32) {
                ARRIVE_THERE(peer(&empty, rank));
                if (READERS == 2) ARRIVE_THERE(peer(&empty, rank ^ 1));
            }
        }
    }
    CLUSTER_SYNC();
    if (t >= 32) out[rank * 32 + t - 32] = sum;
}
