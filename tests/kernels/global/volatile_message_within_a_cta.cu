// R-MO1 within a CTA: two warps hand a volatile word over in global memory, and the reader has no fence.
//
// launch: grid=1 block=64
// arg:    words u32[2]=zeros
// arg:    out u32[1]=zeros
// expect: missing-order RAW @store @load severity=warning
// result: out = np.uint32([7])
extern "C" __global__ void kernel(volatile unsigned* words, unsigned* out) {
    if (threadIdx.x == 32) {
        words[0] = 7;  /*@store*/
        __threadfence();
        words[1] = 1;
    } else if (threadIdx.x == 0) {
        while (!words[1]) {}
#ifndef RACY
        __threadfence();
#endif
        out[0] = words[0];  /*@load*/
    }
}
