// A cp.async writes 16 bytes that hold a live mbarrier: the tile is one row too short (R-M2).
// Not run on a chip: the barrier would never complete.
// backends: cpu
// launch: grid=1 block=64 arch=sm_90
// arg: x f32[260]=arange
// arg: out f32[256]=zeros
// expect: barrier-misuse @init @copy severity=error
// allow: deadlock @wait
// result: out = x[255::-1]
#include "../mbarrier.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ __align__(16) struct { float tile[256]; u64 barrier, unused; } s;
    u32 t = threadIdx.x;
    if (t == 0) INIT(&s.barrier, 64);  /*@init*/
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(s.tile + 4 * t)), "l"(x + 4 * t) : "memory");
#ifdef RACY
    if (t == 0) asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(s.tile + 256)), "l"(x + 256) : "memory");  /*@copy*/
#endif
    asm volatile("cp.async.wait_all;" ::: "memory");
    ARRIVE(&s.barrier);
    WAIT(&s.barrier, 0);  /*@wait*/
    for (int i = 0; i < 4; ++i) out[4 * t + i] = s.tile[255 - 4 * t - i];
}
