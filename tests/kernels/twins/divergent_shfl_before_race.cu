// Eight lanes execute a shuffle whose mask names the whole warp. They go on, so the race behind it is found, too: a maximum is
// read by all warps, and overwritten by the first one without a barrier. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=256
// arg: x f32[256]=arange
// arg: out f32[1]=zeros
// expect: barrier-misuse @point @barrier severity=error
// expect: data-race WAR @read @write severity=error
// result: out = np.array([(x - x.max()).sum()])
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float s[8];
    const int t = threadIdx.x, w = t / 32, l = t % 32;
#ifdef RACY
    const unsigned lanes = 0xffffffffu;
#else
    const unsigned lanes = 0xffu;
#endif
    float v = x[t];
    for (int o = 16; o; o /= 2) v = fmaxf(v, __shfl_down_sync(0xffffffffu, v, o));
    if (l == 0) s[w] = v;
    __syncthreads();
    if (t < 8) {
        float m = s[t];
        for (int o = 4; o; o /= 2) m = fmaxf(m, __shfl_down_sync(lanes, m, o));  /*@point*/
        if (t == 0) s[0] = m;
    }
    __syncthreads();  /*@barrier*/
    float e = x[t] - s[0];  /*@read*/
    for (int o = 16; o; o /= 2) e += __shfl_down_sync(0xffffffffu, e, o);
#ifndef RACY
    __syncthreads();
#endif
    if (l == 0) s[w] = e;  /*@write*/
    __syncthreads();
    if (t == 0) {
        float sum = 0;
        for (int i = 0; i < 8; i++) sum += s[i];
        out[0] = sum;
    }
}
