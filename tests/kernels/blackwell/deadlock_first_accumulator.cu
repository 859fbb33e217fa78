// The issuer of products waits for a free accumulator, and begins with parity 0: nobody has taken anything out of it.
// launch: grid=1 block=192 arch=sm_100a
// arg: x f16[128,16]=random
// arg: y f16[64,16]=random
// arg: out f32[128,64]=zeros
// expect: deadlock severity=error
// result: out = 2 * (x.astype(np.float32) @ y.astype(np.float32).T)
#include "../blackwell.cuh"
#ifdef RACY
#define FIRST 0
#else
#define FIRST 1
#endif
extern "C" __global__ void kernel(const f16* x, const f16* y, float* out) {
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 done, taken_out;
    if (threadIdx.x == 0) init(taken_out, 128);
    prepare(a, x, b, y, base, done);
    if (threadIdx.x == 128) {
        for (u32 tile = 0; tile < 2; ++tile) {
            wait(taken_out, tile ^ FIRST);  // ^ FIRST
            multiply(base, a, b, 0);
            commit_to(done);
        }
        wait(taken_out, 1);
    }
    if (threadIdx.x < 128) {
        for (u32 tile = 0; tile < 2; ++tile) {
            wait(done, tile);
            float v[8];
            for (u32 column = 0; column < COLUMNS; column += 8) {
                load(v, own_lanes(base) + column);
                wait_loads();
                float* to = out + threadIdx.x * COLUMNS + column;
                for (u32 i = 0; i < 8; ++i) to[i] += v[i];
            }
            arrive(taken_out);
        }
    }
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, COLUMNS);
}
