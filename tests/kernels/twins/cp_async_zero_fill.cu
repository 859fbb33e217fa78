// A copy with a short source fills the rest of its 16 bytes with zeros: they are written, and only when it completes.
// launch: grid=1 block=32
// arg: x f32[100]=arange
// arg: out f32[128]=zeros
// arg: n i32=99
// expect: missing-wait @copy @read severity=error
// result: out = np.append(x[:99], np.zeros(29, np.float32))[::-1]
#define CP_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" \
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out, int n) {
    __shared__ __align__(16) float tile[128];
    int t = threadIdx.x;
    int bytes = min(max(n - 4 * t, 0), 4) * 4;
    const float* from = bytes ? x + 4 * t : x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&tile[4 * t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes) : "memory");  /*@copy*/
    COMMIT();
#ifndef RACY
    WAIT(0);
#endif
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        out[k * 32 + t] = tile[127 - (k * 32 + t)];  /*@read*/
    }
}
