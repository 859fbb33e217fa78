// wgmma.fence by half of a warp. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=128 arch=sm_90a
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: barrier-misuse @point severity=error
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    int t = threadIdx.x;
#ifdef RACY
    if (t % 32 < 16)
#endif
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");  /*@point*/
    out[t] = x[t];
}
