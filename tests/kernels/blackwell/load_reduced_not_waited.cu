// tcgen05.ld.red, the largest of eight columns, without a wait for the commit (R-T1).
// launch: grid=1 block=128 arch=sm_103a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128]=zeros
// expect: missing-wait RAW @multiply @load severity=error
// result: out = (x.astype(np.float32) @ y.astype(np.float32).T)[:, :8].max(1)
#include "../blackwell.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done;
    prepare(a, x, b, y, base, done);
    if (threadIdx.x == 0) {
        multiply(base, a, b, 0);  /*@multiply*/
        commit_to(done);
    }
#ifndef RACY
    wait(done, 0);
#endif
    float v[8], largest;
    asm volatile("tcgen05.ld.red.sync.aligned.32x32b.x8.max.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, [%9];"  /*@load*/
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7]), "=f"(largest)
                 : "r"(own_lanes(base)) : "memory");
    wait_loads();
    out[threadIdx.x] = largest;
#ifdef RACY
    wait(done, 0);
#endif
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
