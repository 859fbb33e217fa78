// ldmatrix in a branch that half of a warp takes. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @point severity=error
// result: out = np.concatenate([x[:32], x[:32]])
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(16) float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
    __syncthreads();
    unsigned word = 0;
    unsigned at = (unsigned)__cvta_generic_to_shared(tile) + t % 8 * 16;
#ifdef RACY
    if (t % 32 < 16)
#endif
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(word) : "r"(at) : "memory");  /*@point*/
    out[t] = __uint_as_float(word);
}
