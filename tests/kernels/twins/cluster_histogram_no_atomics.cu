// Counting into the shared memory of several CTAs with plain loads and stores: a barrier helps nobody, an atomic is needed.
// launch: grid=2 block=64 arch=sm_90
// arg: x i32[128]=arange
// arg: out i32[64]=zeros
// expect: data-race WAR @add @add severity=error
// allow: data-race WAW @add @add
// result: out = np.bincount(x * 7 % 64, minlength=64)
#include "../mbarrier.cuh"
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) kernel(const int* x, int* out) {
    __shared__ u32 bins[32];
    u32 t = threadIdx.x;
    if (t < 32) bins[t] = 0;
    CLUSTER_SYNC();
    u32 bin = (u32)x[blockIdx.x * 64 + t] * 7 % 64;
    u32 there = peer(&bins[bin % 32], bin / 32);
#ifdef RACY
    u32 count;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(count) : "r"(there) : "memory");  /*@add*/
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(count + 1) : "memory");  /*@add*/
#else
    ADD_AS("cluster", there, 1);
#endif
    CLUSTER_SYNC();
    if (t < 32) out[blockIdx.x * 32 + t] = bins[t];
}
