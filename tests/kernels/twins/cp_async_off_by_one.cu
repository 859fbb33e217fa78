// A three-stage pipeline keeps one younger group in flight while a tile is read; the racy twin allows two.
// launch: grid=1 block=64
// arg: x f32[1536]=arange
// arg: out f32[64]=zeros
// arg: tiles i32=6
// expect: missing-wait @copy @read severity=error
// expect: missing-wait @first @read severity=error
// result: out = x.reshape(6, 256)[:, ::-4].sum(axis=0)
#define CP_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" \
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
#ifdef RACY
#define PENDING 2
#else
#define PENDING 1
#endif
#define WAIT_EXPANDED(n) WAIT(n)
extern "C" __global__ void kernel(const float* x, float* out, int tiles) {
    __shared__ __align__(16) float stage[3][256];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < 2; k++) {
        CP_ASYNC16(&stage[k][4 * t], &x[k * 256 + 4 * t]);  /*@first*/
        COMMIT();
    }
#pragma unroll 1
    for (int k = 0; k < tiles; k++) {
        WAIT_EXPANDED(PENDING);
        __syncthreads();
        sum += stage[k % 3][255 - 4 * t];  /*@read*/
        if (k + 2 < tiles) {
            CP_ASYNC16(&stage[(k + 2) % 3][4 * t], &x[(k + 2) * 256 + 4 * t]);  /*@copy*/
        }
        COMMIT();
    }
    out[t] = sum;
}
