// R-MO1, a store comes second: a CTA reads a volatile slot and says so by a flag that releases nothing; the other one then stores into the slot.
//
// launch: grid=2 block=1
// arg:    slot u32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out u32[1]=zeros
// expect: missing-order WAR @load @store severity=warning
// result: slot = np.uint32([7])
extern "C" __global__ void kernel(volatile unsigned* slot, volatile unsigned* flag, unsigned* out) {
    if (blockIdx.x == 0) {
        out[0] = *slot;  /*@load*/
#ifndef RACY
        __threadfence();
#endif
        *flag = 1;
    } else {
        while (!*flag) {}
        __threadfence();
        *slot = 7;  /*@store*/
    }
}
