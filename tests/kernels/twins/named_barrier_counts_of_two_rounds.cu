// Warps arrive at a barrier for 128 threads, and the others wait there for 64: these complete rounds of their own (R-BAR2).
// On an H200 the chip stops such a launch: its context is lost.
// backends: cpu
// launch: grid=1 block=128
// arg: x f32[256]=arange
// arg: out f32[64]=zeros
// expect: barrier-misuse @wait @fill severity=error
// allow: barrier-misuse
// allow: data-race
// allow: uninitialized-read
// allow: deadlock
// result: out = x.reshape(4, 64)[:, ::-1].sum(0)
#ifdef RACY
#define COUNT 64
#else
#define COUNT 128
#endif
#define FULL 1
#define FREE 2
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float buffer[64];
    int t = threadIdx.x % 64;
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        if (threadIdx.x < 64) {
            if (i > 0) asm volatile("barrier.sync %0, 128;" :: "n"(FREE) : "memory");
            buffer[t] = x[i * 64 + t];
            asm volatile("barrier.arrive %0, 128;" :: "n"(FULL) : "memory");  /*@fill*/
        } else {
            asm volatile("barrier.sync %0, %1;" :: "n"(FULL), "n"(COUNT) : "memory");  /*@wait*/
            sum += buffer[63 - t];
            if (i < 3) asm volatile("barrier.arrive %0, 128;" :: "n"(FREE) : "memory");
        }
    }
    if (threadIdx.x >= 64) out[t] = sum;
}
