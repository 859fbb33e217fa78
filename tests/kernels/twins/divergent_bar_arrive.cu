// Half of the producing warp does not arrive at the named barrier. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @point severity=error
// allow: data-race
// result: out = np.concatenate([x[::-1][:32], x[32:]])
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
    if (t >= 32) {
#ifdef RACY
        if (t < 48)
#endif
            asm volatile("bar.arrive 1, 64;" ::: "memory");  /*@point*/
        out[t] = tile[t];
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[t] = tile[63 - t];
    }
}
