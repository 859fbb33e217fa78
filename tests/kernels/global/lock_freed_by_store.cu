// G1: a lock that is freed with a plain store, beside a counter that nobody waits for.
//
// launch: grid=4 block=32
// arg:    lock u32[1]=zeros
// arg:    sum f32[1]=zeros
// arg:    done u32[1]=zeros
// arg:    places u32[4]=zeros
// expect: global-race @free @take severity=error
// expect: global-race @update severity=error
// expect: global-race @free severity=warning
// result: sum = np.float32([4])
extern "C" __global__ void kernel(unsigned* lock, float* sum, unsigned* done, unsigned* places) {
    if (threadIdx.x) return;
    unsigned before = atomicAdd(done, 1);
    while (atomicCAS(lock, 0, 1)) {}  /*@take*/
    __threadfence();
    before += atomicAdd(done, 1);
    asm volatile("{.reg .f32 x; ld.global.f32 x, [%0]; add.f32 x, x, 0f3F800000; st.global.f32 [%0], x;}" ::"l"(sum) : "memory");  /*@update*/
    before += atomicAdd(done, 1);
    __threadfence();
#ifdef RACY
    *lock = 0;  /*@free*/
#else
    atomicExch(lock, 0);
#endif
    places[blockIdx.x] = before;
}
