// The two CTAs of a pair have the address of their columns stored at different offsets (T22).
// launch: grid=2 block=128 arch=sm_100a
// arg: out u32[256]=zeros
// expect: tcgen05-misuse @alloc severity=note
// result: out = np.ones(256, np.uint32)
#include "../blackwell_pair.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(u32* out) {
    __shared__ u32 words[2];
#ifdef RACY
    u32& base = words[rank_in_cluster()];
#else
    u32& base = words[0];
#endif
    cluster_sync();
    if (threadIdx.x < 32) alloc_pair(base, COLUMNS);  /*@alloc*/
    __syncthreads();
    out[blockIdx.x * 128 + threadIdx.x] = base + 1;
    cluster_sync();
    if (threadIdx.x < 32) dealloc_pair(base, COLUMNS);
}
