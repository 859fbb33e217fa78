// D26: a tile of 32 elements and 64 threads, as Triton compiles it: all threads load, and one warp stores in place. What the other warp has
// loaded is of no use to it; where it stores it elsewhere, the load races with the store.
//
// launch: grid=1 block=64
// arg:    data f32[32]=arange
// arg:    out f32[32]=zeros
// expect: data-race WAR @load @store severity=error
// result: data = np.arange(32, dtype=np.float32) * 2
extern "C" __global__ void kernel(float* data, float* out) {
    float x;
    unsigned at = threadIdx.x % 32;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(x) : "l"(data + at));  /*@load*/
    float twice = x > 1.0e30f ? x : x + x;
    if (threadIdx.x < 32) data[at] = twice;  /*@store*/
#ifdef RACY
    else out[at] = twice;
#endif
}
