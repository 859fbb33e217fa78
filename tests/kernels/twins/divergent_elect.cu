// elect.sync by half of the warp that its mask names. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @point severity=error
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    int t = threadIdx.x;
    unsigned elected = 0;
#ifdef RACY
    if (t % 32 < 16)
#endif
        asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(elected) :: "memory");  /*@point*/
    out[t] = elected < 2 ? x[t] : 0.0f;
}
