// A writer that takes a lock for readers: its critical section is open to them. RACY: the readers come behind it, and it waits until they are
// in, so that the race is there in each schedule.
//
// launch: grid=3 block=32
// arg:    lock i32[1]=zeros
// arg:    inside i32[1]=zeros
// arg:    v i32[2]=zeros
// arg:    out i32[2]=zeros
// expect: global-race @store @load severity=error
// result: v = np.full(2, 2)
extern "C" __global__ void kernel(int* lock, int* inside, int* v, int* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
#ifdef RACY
        atomicAdd(lock, 1);
        while (atomicAdd(inside, 0) < 2) {}
#else
        while (atomicCAS(lock, 0, -1) != 0);
#endif
        __threadfence();
        v[0] = v[1] = 2;  /*@store*/
        __threadfence();
#ifdef RACY
        atomicAdd(lock, -1);
#else
        atomicExch(lock, 0);
#endif
    } else {
#ifdef RACY
        const int least = 1;
#else
        const int least = 0;
#endif
        int readers;
        do readers = atomicAdd(lock, 0);
        while (readers < least || atomicCAS(lock, readers, readers + 1) != readers);
        atomicAdd(inside, 1);
        __threadfence();
        out[blockIdx.x - 1] = v[0] + v[1];  /*@load*/
        __threadfence();
        atomicSub(lock, 1);
    }
}
