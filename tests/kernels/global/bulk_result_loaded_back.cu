// G11: a bulk load reads what a bulk store of the same thread writes; the wait between is for the source of the store only.
//
// launch: grid=1 block=64 arch=sm_90a
// arg:    data f32[64]=zeros
// arg:    out f32[64]=zeros
// expect: missing-wait RAW @store @load severity=error
// result: out = np.arange(64, dtype=np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* data, float* out) {
    __shared__ alignas(128) float from[64], to[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) init(full, 1);
    from[t] = t;
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        bulk_store(data, from, sizeof(from));  /*@store*/
        bulk_commit();
#ifdef RACY
        bulk_wait_read<0>();
#else
        bulk_wait<0>();
#endif
        expect(full, sizeof(to));
        bulk_load(to, data, sizeof(to), full);  /*@load*/
    }
    wait(full, 0);
    out[t] = to[t];
    if (t == 0) bulk_wait<0>();
}
