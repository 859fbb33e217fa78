// R-GM2: the fence and the flag come before the value that they are to publish.
//
// launch: grid=2 block=32
// arg:    x f32[64]=arange
// arg:    value f32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[32]=zeros
// backends: cpu
// expect: global-race @value @read severity=error
// result: out = np.full(32, 31, np.float32)
extern "C" __global__ void kernel(const float* x, float* value, volatile unsigned* flag, float* out) {
    if (blockIdx.x == 0) {
        float largest = x[threadIdx.x];
        for (int step = 16; step; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
        if (threadIdx.x == 0) {
#ifdef RACY
            __threadfence();
            *flag = 1;
            *value = largest;  /*@value*/
#else
            *value = largest;
            __threadfence();
            *flag = 1;
#endif
        }
        return;
    }
    while (*flag == 0) {}
    __threadfence();
    out[threadIdx.x] = __ldcg(value);  /*@read*/
}
