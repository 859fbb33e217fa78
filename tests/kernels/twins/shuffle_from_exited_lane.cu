// The sum of the elements of each warp. In the racy twin lanes without an element exit before the shuffles, so others add values that
// are undefined (9.7.9.6); in the fixed twin they stay, with zero. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[2]=zeros
// arg: n i32=50
// expect: barrier-misuse @shuffle @store severity=error
// result: out = np.array([x[:32].sum(), x[32:50].sum()])
extern "C" __global__ void kernel(const float* x, float* out, int n) {
    int t = threadIdx.x;
#ifdef RACY
    if (t >= n) return;
    float v = x[t];
#else
    float v = t < n ? x[t] : 0;
#endif
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);  /*@shuffle*/
    if (t % 32 == 0) out[t / 32] = v;  /*@store*/
}
