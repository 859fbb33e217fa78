// Each CTA has a slot by the order in which they come to a counter. In the racy twin a CTA that comes at its own place keeps it, and the others
// change places with a neighbour: two have one slot if a CTA in the middle comes before those in front of it, and these keep their order.
// launch:   grid=4 block=32 arch=sm_80
// arg:      slots u32[4]=zeros
// arg:      counter u32[1]=zeros
// expect:   global-race severity=error
// backends: cpu
extern "C" __global__ void kernel(unsigned *slots, unsigned *counter) {
    if (threadIdx.x != 0) return;
    unsigned place = atomicAdd(counter, 1);
#ifdef RACY
    if (place != blockIdx.x) place ^= 1;
#endif
    slots[place] = 1 + blockIdx.x;
}
