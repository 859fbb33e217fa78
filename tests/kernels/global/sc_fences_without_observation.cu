// G7: two fence.sc with no observation between them order nothing that a program may rely on.
//
// launch: grid=2 block=32
// arg:    data f32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: global-race @store @load severity=error
// result: out = np.float32([7])
extern "C" __global__ void kernel(float* data, volatile unsigned* flag, float* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *data = 7;  /*@store*/
        __threadfence();
        *flag = 1;
    } else {
#ifdef RACY
        for (int i = 0; i < 100; i++) __nanosleep(1000);
#else
        while (!*flag) {}
#endif
        __threadfence();
        *out = *data;  /*@load*/
    }
}
