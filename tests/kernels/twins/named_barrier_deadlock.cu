// The consumer waits on a barrier that nobody signals. Every live thread waits, so no timer is needed to see it.
// backends: cpu
// launch: grid=1 block=64
// arg: x f32[32]=arange
// arg: out f32[32]=zeros
// expect: deadlock @wait severity=error
// result: out = x[::-1]
#ifdef RACY
#define SIGNALLED "2"
#else
#define SIGNALLED "1"
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float buffer[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == 0) {
        buffer[lane] = x[lane];
        asm volatile("bar.arrive " SIGNALLED ", 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");  /*@wait*/
        out[lane] = buffer[31 - lane];
    }
}
