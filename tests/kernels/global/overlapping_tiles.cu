// Two CTAs whose tiles overlap by one element.
//
// launch: grid=4 block=32
// arg:    out f32[128]=zeros
// expect: global-race WAW @store severity=error
// result: out = np.repeat(np.arange(4), 32).astype(np.float32)
extern "C" __global__ void kernel(float* out) {
#ifdef RACY
    int first = blockIdx.x * 31;
#else
    int first = blockIdx.x * 32;
#endif
    out[first + threadIdx.x] = blockIdx.x;  /*@store*/
}
