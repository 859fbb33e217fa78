// Half of a warp goes round the only __syncthreads(), and ends. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @point @there severity=error
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    int t = threadIdx.x;
#ifdef RACY
    if (t % 32 < 16)
#endif
        __syncthreads();  /*@point*/
    out[t] = x[t];  /*@there*/
}
