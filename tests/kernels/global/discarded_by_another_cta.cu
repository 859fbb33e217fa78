// A discard of cached lines leaves bytes that nobody knows: it is a write (ISA "discard").
//
// launch: grid=2 block=32
// arg:    a f32[64]=arange
// arg:    b f32[64]=zeros
// expect: global-race @load @discard severity=error
// result: b = np.arange(64)
extern "C" __global__ void kernel(float* a, float* b) {
    int i = blockIdx.x * 32 + threadIdx.x;
    b[i] = a[i];  /*@load*/
    __syncthreads();
#ifdef RACY
    int done = 1 - blockIdx.x;
#else
    int done = blockIdx.x;
#endif
    if (threadIdx.x == 0) asm volatile("discard.global.L2 [%0], 128;" ::"l"(a + done * 32) : "memory");  /*@discard*/
}
