// G3: the fences are wide enough, the flag itself is accessed at .cta scope.
//
// launch: grid=2 block=32
// arg:    data f32[2]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: scope @store @load severity=error
// expect: scope @flag severity=error
// result: out = np.float32([3])
extern "C" __global__ void kernel(float* data, unsigned* count, float* out) {
    if (threadIdx.x) return;
    data[blockIdx.x] = blockIdx.x + 1;  /*@store*/
    __threadfence();
#ifdef RACY
    bool last = atomicAdd_block(count, 1) == 1;  /*@flag*/
#else
    bool last = atomicAdd(count, 1) == 1;
#endif
    __threadfence();
    if (last) *out = data[0] + data[1];  /*@load*/
}
