// R-SR1: a warp hands data to the other one by a relaxed arrival and a relaxed wait. Fences with .sync_restrict between them order what
// is in shared memory, and not what is in global memory (ISA "membar, fence").
//
// launch: grid=1 block=64 arch=sm_90
// arg:    data f32[32]=zeros
// arg:    out f32[32]=zeros
// expect: data-race RAW @store @load severity=error
// result: out = np.arange(32) * 3
#include "../mbarrier.cuh"
#ifdef RACY
#define RELEASE "fence.release.sync_restrict::shared::cta.cluster;"
#define ACQUIRE "fence.acquire.sync_restrict::shared::cluster.cluster;"
#else
#define RELEASE "fence.acq_rel.cluster;"
#define ACQUIRE "fence.acq_rel.cluster;"
#endif
extern "C" __global__ void kernel(float* data, float* out) {
    __shared__ u64 full;
    __shared__ float row[32];
    int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) INIT(&full, 32);
    __syncthreads();
    if (threadIdx.x < 32) {
        row[lane] = lane;
        data[lane] = 2 * lane;  /*@store*/
        asm volatile(RELEASE ::: "memory");
        asm volatile("mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [%0];" ::"r"(shared(&full)) : "memory");
    } else {
        WAIT_AS("try_wait.parity.relaxed.cluster", &full, "r", (u32)0);
        asm volatile(ACQUIRE ::: "memory");
        out[lane] = row[lane] + data[lane];  /*@load*/
    }
}
