// Half of the threads start a copy for a round that never comes, and the kernel returns while it is in flight: nobody has waited for it (R-CP5).
// launch: grid=2 block=64
// arg: x f32[512]=arange
// arg: out f32[2,64]=zeros
// expect: lifetime @prefetch severity=error
// result: out = np.stack([x[3:256:4], x[3:256:4]])
#define CP_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" \
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(16) float tile[2][256];
    int t = threadIdx.x;
    CP_ASYNC16(&tile[0][4 * t], &x[4 * t]);
    COMMIT();
    if (t < 32) CP_ASYNC16(&tile[1][4 * t], &x[256 + 4 * t]);  /*@prefetch*/
    COMMIT();
    WAIT(1);
    out[64 * blockIdx.x + t] = tile[0][4 * t + 3];
#ifndef RACY
    WAIT(0);
#endif
}
