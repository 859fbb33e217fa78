// Storage of mbarriers that serves a second time: inval, then data or new barriers with another count, behind CTA barriers.
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[256]=random
// arg: out f32[64]=zeros
// result: out = x.reshape(4, 64).sum(0)
// bug 1: barrier-misuse no inval before the new init
// bug 2: barrier-misuse no inval before the bytes are data
// bug 3: barrier-misuse inval before the others have waited
// bug 4: barrier-misuse a late arrival at the old barrier
// bug 5: barrier-misuse|data-race no barrier between inval and the new init, by another thread
// bug 6: clean inval and init by one thread, one barrier behind both
// bug 7: barrier-misuse inval with the copy in flight
// bug 8: clean the old barrier is never waited for by those that know by __syncthreads
#include "../hopper.cuh"
INLINE void inval(u64& b) { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared(&b)) : "memory"); }
extern "C" __global__ void __launch_bounds__(64) kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[256];
    __shared__ alignas(16) u64 storage[2];
    const u32 t = threadIdx.x;
    if (t == 0) {
        init(storage[0], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (t == 0) expect(storage[0], 1024), bulk_load(tile, x, 1024, storage[0]);
#if BUG == 3
    if (t == 0) wait(storage[0], 0), inval(storage[0]);
    if (t != 0) wait(storage[0], 0);
#elif BUG == 7
    if (t == 0) inval(storage[0]);
    __syncthreads();
#elif BUG == 8
    if (t < 32) wait(storage[0], 0);
#else
    wait(storage[0], 0);
#endif
    __syncthreads();
    float sum = 0;
    for (u32 i = 0; i < 4; i++) sum += tile[i * 64 + t];
#if BUG == 2
    if (t < 2) ((float*)storage)[t] = sum;
    __syncthreads();
    out[t] = sum + ((float*)storage)[0] * 0;
    return;
#endif
#if BUG != 1 && BUG != 3 && BUG != 7
    if (t == 0) inval(storage[0]);
#endif
#if BUG != 5 && BUG != 6
    __syncthreads();
#endif
    if (t == (BUG == 5 ? 32 : 0)) init(storage[0], 64);
    __syncthreads();
#if BUG == 4
    if (t == 0) inval(storage[0]);
    __syncthreads();
#endif
    tile[t] = sum;
    arrive(storage[0]);
#if BUG != 4
    wait(storage[0], 0);
#endif
    out[63 - t] = tile[63 - t];
}
