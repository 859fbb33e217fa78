// redux.sync whose mask names the whole warp, executed by half of it; in the fixed twin all lanes take part. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @point @there severity=error
// result: out = x + 15
extern "C" __global__ void kernel(const float* x, float* out) {
    int t = threadIdx.x;
    float more = 0;
#ifdef RACY
    if (t % 32 < 16)
#endif
        more = __reduce_max_sync(0xffffffff, t % 32 % 16);  /*@point*/
    out[t] = x[t] + more;  /*@there*/
}
