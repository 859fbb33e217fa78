// A writer that takes a lock for readers: its critical section is open to them. A CTA that has taken it lets the others go on.
//
// launch: grid=3 block=32
// arg:    lock i32[1]=zeros
// arg:    v i32[2]=zeros
// arg:    out i32[2]=zeros
// expect: global-race @store @load severity=error
// result: v = np.full(2, 2)
extern "C" __global__ void kernel(int* lock, int* v, int* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
#ifdef RACY
        atomicAdd(lock, 1);
#else
        while (atomicCAS(lock, 0, -1) != 0);
#endif
        __nanosleep(20000);  // time for the others, on a chip
        __threadfence();
        v[0] = v[1] = 2;  /*@store*/
        __threadfence();
#ifdef RACY
        atomicAdd(lock, -1);
#else
        atomicExch(lock, 0);
#endif
    } else {
        int readers;
        do readers = atomicAdd(lock, 0);
        while (readers < 0 || atomicCAS(lock, readers, readers + 1) != readers);
        __threadfence();
        out[blockIdx.x - 1] = v[0] + v[1];  /*@load*/
        __threadfence();
        atomicSub(lock, 1);
    }
}
