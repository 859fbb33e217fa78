// Rows that cp.async gathers go out as one bulk store. Under RACY the proxy fence comes before the wait, when the bytes are not there (R-B9).
// launch: grid=2 block=64 arch=sm_90
// arg: x f32[8,128]=arange
// arg: out f32[2,256]=zeros
// expect: missing-proxy-fence RAW @copy @store severity=error
// result: out = x[[0, 3, 1, 4]].reshape(2, 256)
#include "../hopper.cuh"
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ alignas(128) float tile[256];
    u32 t = threadIdx.x, row = blockIdx.x + t / 32 * 3;
    copy16(tile + 4 * t, x + row * 128 + t % 32 * 4);  /*@copy*/
#ifdef RACY
    fence_async_shared();
    copy_wait();
#else
    copy_wait();
    fence_async_shared();
#endif
    __syncthreads();
    if (t == 0) {
        bulk_store(out + 256 * blockIdx.x, tile, 1024);  /*@store*/
        bulk_commit();
        bulk_wait<0>();
    }
}
