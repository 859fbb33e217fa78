// __syncthreads_count() in a branch that half of a warp takes. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @point @there severity=error
// result: out = x + 32
extern "C" __global__ void kernel(const float* x, float* out) {
    int t = threadIdx.x, found = 0;
#ifdef RACY
    if (t % 32 < 16)
#endif
        found = __syncthreads_count(t & 1);  /*@point*/
    out[t] = x[t] + found;  /*@there*/
}
