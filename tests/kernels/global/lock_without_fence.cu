// A spin lock around a plain update: acquired by a compare-and-swap, released by an exchange, with fences on both sides.
//
// launch: grid=4 block=32
// arg:    lock u32[1]=zeros
// arg:    sum f32[1]=zeros
// expect: global-race @update severity=error
// result: sum = np.float32([4])
extern "C" __global__ void kernel(unsigned* lock, float* sum) {
    if (threadIdx.x) return;
    while (atomicCAS(lock, 0, 1)) {}
#ifndef RACY
    __threadfence();
#endif
    asm volatile("{.reg .f32 x; ld.global.f32 x, [%0]; add.f32 x, x, 0f3F800000; st.global.f32 [%0], x;}" ::"l"(sum) : "memory");  /*@update*/
#ifndef RACY
    __threadfence();
#endif
    atomicExch(lock, 0);
}
