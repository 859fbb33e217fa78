// A store that leaves the CTA's shared memory: the launch asked for too little (a chip may end the context: CPU only).
// backends: cpu
// launch: grid=1 block=128 smem=512
// arg: x f32[128]=arange
// arg: out f32[128]=zeros
// expect: out-of-bounds @write severity=error
// allow: uninitialized-read
// result: out = x[::-1]
#ifdef RACY
#define SHIFT 64
#else
#define SHIFT 0
#endif
extern "C" __global__ void kernel(const float* x, float* out) {
    extern __shared__ float dynamic[];
    int t = threadIdx.x;
    dynamic[t + SHIFT] = x[t];  /*@write*/
    __syncthreads();
    out[t] = dynamic[127 - t];
}
