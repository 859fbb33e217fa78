// One wait covers two products and their consumers; a second wait finds nothing to wait for. Then the results take the operands' place.
// launch: grid=1 block=128 arch=sm_90a
// arg: x f16[64,16]=random
// arg: y f16[8,16]=random
// arg: z f16[8,16]=random
// arg: out f32[64,8]=zeros
// arg: more f32[64,8]=zeros
// result: out = x.astype(np.float32) @ y.astype(np.float32).T
// result: more = x.astype(np.float32) @ z.astype(np.float32).T
#include "../hopper.cuh"
extern "C" __global__ void kernel(const f16* x, const f16* y, const f16* z, float* out, float* more) {
    __shared__ alignas(128) f16 a[64 * 16], b[8 * 16], c[8 * 16];
    int t = threadIdx.x;
    fill_operands(a, b, x, y);
    c[place(t / 16, t % 16)] = z[t];
    fence_async_shared();
    __syncthreads();
    float d[4], e[4];
    wgmma_fence();
    multiply(d, operand(a), operand(b), 0);
    wgmma_commit();
    multiply(e, operand(a), operand(c), 0);
    wgmma_commit();
    wgmma_wait<0>();
    __syncthreads();
    float* result = reinterpret_cast<float*>(a);
    for (int i = 0; i < 4; i++) result[i * 128 + t] = d[i];
    wgmma_wait<0>();
    for (int i = 0; i < 4; i++) d[i] = result[i * 128 + t];
    for (int i = 0; i < 4; i++) result[i * 128 + t] = e[i];
    write_result(out, d);
    for (int i = 0; i < 4; i++) e[i] = result[i * 128 + t];
    write_result(more, e);
}
