// G4: the last of several CTAs has read from the atomic before its own only; the others' releases come to it through these atomics.
//
// launch: grid=4 block=32
// arg:    data f32[4]=zeros
// arg:    count u32[1]=zeros
// arg:    out f32[1]=zeros
// expect: global-race RAW @store @load severity=error
// result: out = np.float32([10])
#ifdef RACY
#define ORDER "relaxed"
#else
#define ORDER "release"
#endif
extern "C" __global__ void kernel(float* data, unsigned* count, float* out) {
    if (threadIdx.x) return;
    data[blockIdx.x] = blockIdx.x + 1;  /*@store*/
    unsigned before;
    asm volatile("atom." ORDER ".gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(count) : "memory");
    if (before != gridDim.x - 1) return;
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    *out = data[0] + data[1] + data[2] + data[3];  /*@load*/
}
