// R-SR1: a warp hands data to the other one by a flag in global memory, and a fence with .sync_restrict::shared::cta before it: what is in
// shared memory is in order, what is in global memory is not.
//
// launch: grid=1 block=64 arch=sm_90
// arg:    data f32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: data-race RAW @store @load severity=error
// result: out = np.float32([10])
#ifdef RACY
#define RELEASE "fence.release.sync_restrict::shared::cta.cluster;"
#else
#define RELEASE "fence.acq_rel.cluster;"
#endif
extern "C" __global__ void kernel(float* data, unsigned* flag, float* out) {
    __shared__ float row;
    if (threadIdx.x == 0) {
        row = 3;
        *data = 7;  /*@store*/
        asm volatile(RELEASE ::: "memory");
        asm volatile("st.relaxed.cluster.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else if (threadIdx.x == 32) {
        unsigned seen;
        do asm volatile("ld.relaxed.cluster.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        while (!seen);
        asm volatile("fence.acq_rel.cluster;" ::: "memory");
        *out = row + *data;  /*@load*/
    }
}
