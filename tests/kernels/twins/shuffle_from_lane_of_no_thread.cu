// The largest element of each warp of a CTA of 48 threads: lanes 16 to 31 of the second warp do not exist, and their values are undefined
// (9.7.9.6). The fixed twin takes none of them. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=48
// arg: x f32[48]=arange
// arg: out f32[2]=zeros
// expect: barrier-misuse @shuffle @store severity=error
// result: out = np.array([x[31], x[47]])
extern "C" __global__ void kernel(const float* x, float* out) {
    int t = threadIdx.x;
    float v = x[t];
#ifdef RACY
    for (int o = 16; o; o >>= 1)
#else
    for (int o = t < 32 ? 16 : 8; o; o >>= 1)
#endif
        v = fmaxf(v, __shfl_down_sync(0xffffffff, v, o));  /*@shuffle*/
    if (t % 32 == 0) out[t / 32] = v;  /*@store*/
}
