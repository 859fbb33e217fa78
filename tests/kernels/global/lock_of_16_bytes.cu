// G10: a lock that is taken by atom.cas.b128 and freed by atom.exch.b128. RACY: the exchange is relaxed, so the next owner may miss the sum.
//
// launch: grid=2 block=32 arch=sm_90a
// arg:    lock u64[2]=zeros
// arg:    sum u32[1]=zeros
// expect: global-race @update @update severity=error
// result: sum = np.uint32([2])
#ifdef RACY
#define ORDER "relaxed"
#else
#define ORDER "release"
#endif
extern "C" __global__ void kernel(unsigned long long* lock, unsigned* sum) {
    if (threadIdx.x) return;
    unsigned long long low = 1;
    while (low)
        asm volatile(
            "{ .reg .b128 q, w, z; mov.b128 w, {%1, %2}; mov.b128 z, {%3, %3}; atom.acquire.gpu.global.cas.b128 q, [%4], z, w; mov.b128 {%0, _}, q; }"
            : "=l"(low) : "l"(1ull), "l"(5ull), "l"(0ull), "l"(lock) : "memory");
    *sum += 1; /*@update*/
    asm volatile("{ .reg .b128 q, z; mov.b128 z, {%0, %0}; atom." ORDER ".gpu.global.exch.b128 q, [%1], z; }" ::"l"(0ull), "l"(lock) : "memory");
}
