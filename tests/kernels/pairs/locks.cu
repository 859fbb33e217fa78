// Bank accounts under per-bucket spin locks; a ticket lock guards a log.
// launch: grid=6 block=32
// arg: bucket f32[4]=zeros
// arg: lock i32[4]=zeros
// arg: next u32[2]=zeros
// arg: log u32[6]=zeros
// result: bucket = np.array([2., 2., 1., 1.], np.float32)
// bug 1: global-race release by plain store without fence
// bug 2: global-race no fence after acquisition
// bug 3: global-race lock of the wrong bucket
// bug 4: global-race update before lock taken
// bug 5: global-race ticket lock: serving is advanced before the log is written
// bug 6: global-race ticket lock: no fence after the wait
// bug 7: clean cas acquire / exch release forms
// bug 8: scope cas acquire cta
__device__ void take(int* lock) {
#if BUG == 7
    int old;
    do { asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(lock) : "memory"); } while (old);
#elif BUG == 8
    int old;
    do { asm volatile("atom.acquire.cta.global.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(lock) : "memory"); } while (old);
#else
    while (atomicCAS(lock, 0, 1) != 0) {}
#if BUG != 2
    __threadfence();
#endif
#endif
}
__device__ void give(int* lock) {
#if BUG == 7
    int old;
    asm volatile("atom.release.gpu.global.exch.b32 %0, [%1], 0;" : "=r"(old) : "l"(lock) : "memory");
#elif BUG == 1
    *(volatile int*)lock = 0;
#else
    __threadfence();
    atomicExch(lock, 0);
#endif
}
extern "C" __global__ void kernel(float* bucket, int* lock, unsigned* next, unsigned* log) {
    if (threadIdx.x) return;
    unsigned b = blockIdx.x % 4;
#if BUG == 4
    float value = bucket[b];
#endif
#if BUG == 3
    take(&lock[blockIdx.x % 3]);
#else
    take(&lock[b]);
#endif
#if BUG == 4
    bucket[b] = value + 1.f;
#else
    bucket[b] += 1.f;
#endif
#if BUG == 3
    give(&lock[blockIdx.x % 3]);
#else
    give(&lock[b]);
#endif
    // The log: entry 0 counts, the others are appended.
    unsigned mine = atomicAdd(&next[0], 1u);
    while (((volatile unsigned*)next)[1] != mine) {}
#if BUG != 6
    __threadfence();
#endif
#if BUG == 5
    __threadfence();
    atomicAdd(&next[1], 1u);
    log[0] += 1;
#else
    unsigned count = log[0];
    log[0] = count + 1;
    if (count + 1 < 6) log[count + 1] = blockIdx.x;
    __threadfence();
    atomicAdd(&next[1], 1u);
#endif
}
