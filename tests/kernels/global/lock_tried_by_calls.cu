// G1, the release side: a lock that a function tries to take, in a loop of calls; the thread that frees it publishes nothing.
//
// launch: grid=4 block=32
// arg:    lock u32[1]=zeros
// arg:    sum f32[1]=zeros
// expect: global-race @update severity=error
// result: sum = np.float32([4])
__device__ __noinline__ bool take(unsigned* lock) { return atomicExch(lock, 1) == 0; }
__device__ __noinline__ void give(unsigned* lock) {
#ifndef RACY
    __threadfence();
#endif
    atomicExch(lock, 0);
}
extern "C" __global__ void kernel(unsigned* lock, float* sum) {
    if (threadIdx.x) return;
    while (!take(lock)) {}
    __threadfence();
    asm volatile("{.reg .f32 x; ld.global.f32 x, [%0]; add.f32 x, x, 0f3F800000; st.global.f32 [%0], x;}" ::"l"(sum) : "memory");  /*@update*/
    give(lock);
}
