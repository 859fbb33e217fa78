// Each lane of a warp stores a word and sets its bit; the other warp waits for the bit of lane 0 in place of all. The lanes set them together in the
// first schedule.
// launch:   grid=1 block=64 arch=sm_80
// arg:      x u32[64]=arange
// arg:      out u32[32]=zeros
// expect:   data-race severity=error
// result:   out = x[:32]
// backends: cpu
#ifdef RACY
#define BITS 1u
#else
#define BITS ~0u
#endif
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ unsigned box[32], bits;
    unsigned t = threadIdx.x;
    if (t == 0) bits = 0;
    __syncthreads();
    if (t < 32) {
        box[t] = x[t];
        __threadfence_block();
        atomicOr(&bits, 1u << t);
    } else {
        while ((*(volatile unsigned*)&bits & BITS) != BITS) {}
        __threadfence_block();
        out[t - 32] = box[t - 32];
    }
}
