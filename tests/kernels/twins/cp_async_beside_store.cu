// A thread stores to bytes that a copy of another thread writes. In the racy twin nothing orders the store and the issue of the copy, so it is no
// missing wait: the store may come before the copy, too (SEMANTICS 4).
// launch: grid=1 block=64
// arg: x f32[256]=arange
// arg: out f32[256]=zeros
// expect: data-race WAW @copy @store severity=error
// result: out = np.where(np.arange(256) % 4 == 3, -1, x)
#define CP_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" \
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(16) float tile[256];
    int t = threadIdx.x;
    CP_ASYNC16(&tile[4 * t], &x[4 * t]);  /*@copy*/
    COMMIT();
    WAIT(0);
#ifndef RACY
    __syncthreads();
#endif
    tile[4 * (t ^ 32) + 3] = -1.0f;  /*@store*/
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        out[k * 64 + t] = tile[k * 64 + t];
    }
}
