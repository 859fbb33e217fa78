// As cp_async_fence_before_wait, in a loop: under RACY the copies are committed and fenced, and nobody waits for them (R-CP1).
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[16,128]=arange
// arg: out f32[8,256]=zeros
// expect: missing-wait RAW @copy @store severity=error
// allow: missing-wait WAW @copy @copy severity=error
// allow: missing-proxy-fence RAW @copy @store severity=error
// result: out = x.reshape(8, 256)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[256];
    u32 t = threadIdx.x;
    for (u32 i = blockIdx.x; i < 8; i += 2) {
        copy16(tile + 4 * t, x + i * 256 + 4 * t);  /*@copy*/
        asm volatile("cp.async.commit_group;" ::: "memory");
#ifndef RACY
        asm volatile("cp.async.wait_group 0;" ::: "memory");
#endif
        fence_async_shared();
        __syncthreads();
        if (t == 0) {
            bulk_store(out + 256 * i, tile, 1024);  /*@store*/
            bulk_commit();
            bulk_wait_read<0>();
        }
        __syncthreads();
    }
}
