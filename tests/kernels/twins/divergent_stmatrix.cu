// stmatrix in a branch that half of a warp takes. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=32 arch=sm_90a
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: barrier-misuse @point severity=error
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(16) float tile[32];
    int t = threadIdx.x;
    tile[t] = 0;
    __syncwarp();
    unsigned to = (unsigned)__cvta_generic_to_shared(tile) + t % 8 * 16;
#ifdef RACY
    if (t < 16)
#endif
        asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" :: "r"(to), "r"(__float_as_uint(x[t])) : "memory");  /*@point*/
    __syncwarp();
    out[t] = tile[t];
}
