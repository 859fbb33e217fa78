// G8: what an access observes is before what follows it, not before the access itself. A CTA's narrow update comes before its wide one, and
// another CTA's update reads the sum of both: it observes the narrow one, and races with it all the same. The flag makes the run show this
// order, and orders nothing: it has no fences.
//
// launch: grid=2 block=32
// arg:    sum u32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out u32[1]=zeros
// expect: scope @narrow @other severity=error
// result: sum = np.uint32([7])
extern "C" __global__ void kernel(unsigned* sum, volatile unsigned* flag, unsigned* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
#ifdef RACY
        atomicAdd_block(sum, 1);  /*@narrow*/
#else
        atomicAdd(sum, 1);
#endif
        atomicAdd(sum, 2);
        *flag = 1;
    } else {
        while (!*flag) {}
        unsigned seen = atomicAdd(sum, 4);  /*@other*/
        if (seen == 100) *out = seen;
    }
}
