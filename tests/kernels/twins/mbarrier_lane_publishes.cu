// One lane stores and arrives; all others wait, those of its own warp, too. In the racy twin it arrives first.
// launch: grid=1 block=64 arch=sm_90
// arg: out u32[64]=zeros
// arg: x u32[1]=arange
// expect: data-race RAW @store @read severity=error
// allow: uninitialized-read @read severity=error
// result: out = np.arange(64) + x[0]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(u32* out, const u32* x) {
    __shared__ u32 first;
    __shared__ u64 ready;
    const u32 t = threadIdx.x;
    if (t == 0) INIT(&ready, 1);
    __syncthreads();
    if (t == 0) {
#ifdef RACY
        ARRIVE(&ready);
#endif
        first = x[0];  /*@store*/
#ifndef RACY
        ARRIVE(&ready);
#endif
    }
    WAIT(&ready, 0);
    out[t] = first + t;  /*@read*/
}
