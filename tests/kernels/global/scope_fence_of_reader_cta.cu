// G3: message passing with fences; the reader's has .cta scope. Its flag and the writer's fence are wide enough.
//
// launch: grid=2 block=32
// arg:    data f32[1]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: scope @store @load severity=error
// result: out = np.float32([7])
extern "C" __global__ void kernel(float* data, volatile unsigned* flag, float* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *data = 7;  /*@store*/
        __threadfence();
        *flag = 1;
    } else {
        while (!*flag) {}
#ifdef RACY
        __threadfence_block();
#else
        __threadfence();
#endif
        *out = *data;  /*@load*/
    }
}
