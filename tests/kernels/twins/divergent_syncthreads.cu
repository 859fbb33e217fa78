// Half of a warp goes round __syncthreads(), and meets the others at the next one: the first is at fault. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @point severity=error
// allow: data-race
// result: out = x[::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
#ifdef RACY
    if (t < 16)
#endif
        __syncthreads();  /*@point*/
    float mine = tile[63 - t];
    __syncthreads();
    tile[t] = mine;
    __syncthreads();
    out[t] = tile[t];
}
