// The global source of a copy is overwritten by its own CTA while the copy is in flight.
// launch: grid=1 block=64
// arg: x f32[256]=arange
// arg: out f32[64]=zeros
// expect: missing-wait @copy @store severity=error
// result: out = x[1::4]
// result: x = np.zeros(256, np.float32)
#define CP_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" \
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
extern "C" __global__ void kernel(float4* x, float* out) {
    __shared__ __align__(16) float tile[256];
    int t = threadIdx.x;
    CP_ASYNC16(&tile[4 * t], &x[t]);  /*@copy*/
    COMMIT();
#ifndef RACY
    WAIT(0);
#endif
    x[t] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);  /*@store*/
    WAIT(0);
    out[t] = tile[4 * t + 1];
}
