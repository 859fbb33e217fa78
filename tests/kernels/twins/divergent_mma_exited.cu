// mma.sync of a warp after half of it has exited: for matrix instructions the ISA allows no exited lanes. Undefined: no chip runs it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[64]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @point severity=error
// result: out = x
extern "C" __global__ void kernel(const float* x, float* out) {
    int t = threadIdx.x;
#ifdef RACY
    if (t % 32 >= 16) return;
#endif
    unsigned a = 0, b = 0;
    float d[4];
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, {%5}, {%6, %6, %6, %6};"  /*@point*/
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a), "r"(b), "f"(0.0f));
    out[t] = x[t] + d[0];
}
