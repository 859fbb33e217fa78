// G11: thread 0 stores a tile with a bulk copy and sets a flag after the wait for the source only (the flashinfer 4742 shape).
//
// launch: grid=2 block=32 arch=sm_90a
// arg:    data f32[32]=zeros
// arg:    flag u32[1]=zeros
// arg:    out f32[32]=zeros
// expect: missing-wait RAW @copy @load severity=error
// result: out = np.arange(32, dtype=np.float32)
#include "../hopper.cuh"
extern "C" __global__ void kernel(float* data, u32* flag, float* out) {
    __shared__ alignas(128) float tile[32];
    if (blockIdx.x == 0) {
        tile[threadIdx.x] = threadIdx.x;
        fence_async_shared();
        __syncthreads();
        if (threadIdx.x == 0) {
            bulk_store(data, tile, sizeof(tile));  /*@copy*/
            bulk_commit();
#ifdef RACY
            bulk_wait_read<0>();
#else
            bulk_wait<0>();
#endif
            asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
#ifdef RACY
            bulk_wait<0>();
#endif
        }
    } else {
        u32 seen = 0;
        if (threadIdx.x == 0)
            while (!seen) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x];  /*@load*/
    }
}
