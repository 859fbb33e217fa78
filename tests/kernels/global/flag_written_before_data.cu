// G1: a CTA writes a flag, and its data only then.
//
// launch: grid=2 block=32
// arg:    flag u32[1]=zeros
// arg:    data u32[1]=zeros
// arg:    out u32[1]=zeros
// expect: global-race RAW @store @load severity=error
// result: out = np.full(1, 7)
extern "C" __global__ void kernel(unsigned* flag, unsigned* data, unsigned* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
#ifdef RACY
        atomicExch(flag, 1);
        data[0] = 7;  /*@store*/
#else
        data[0] = 7;
        __threadfence();
        atomicExch(flag, 1);
#endif
    } else {
        while (*(volatile unsigned*)flag == 0) {}
        __threadfence();
        out[0] = data[0];  /*@load*/
    }
}
