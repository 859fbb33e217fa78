// What a bulk store has written is read back by its own thread after wait_group.read, which promises only that shared memory has been
// read (ISA "cp.async.bulk.wait_group"; R-B3).
// launch: grid=2 block=64 arch=sm_90a
// arg: x f32[64]=arange
// arg: out f32[128]=zeros
// arg: sums f32[2]=zeros
// expect: missing-wait @store @load severity=error
// result: out = np.tile(np.arange(64), 2).astype(np.float32)
// result: sums = np.full(2, 63, np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out, float* sums) {
    __shared__ alignas(128) float tile[64];
    u32 t = threadIdx.x;
    tile[t] = x[t];
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        bulk_store(out + 64 * blockIdx.x, tile, sizeof(tile)); /*@store*/
        bulk_commit();
#ifdef RACY
        bulk_wait_read<0>();
#else
        bulk_wait<0>();
#endif
        sums[blockIdx.x] = out[64 * blockIdx.x + 63]; /*@load*/
    }
}
