// While one warp copies a map to global memory, the other clears it for the next one.
// launch: grid=1 block=64 arch=sm_90a
// arg: map u32[32]=arange
// expect: data-race WAR @copy @clear severity=error
// result: map = np.where(np.arange(32) == 8, 99, 0)
#include "../tensormap.cuh"
extern "C" __global__ void kernel(u32* map) {
    __shared__ SharedMap built;
    if (threadIdx.x < 32) built.words[threadIdx.x] = 0;
    __syncwarp();
    if (threadIdx.x == 0) set_width(&built, 100);
    __syncthreads();
    if (threadIdx.x < 32) publish(map, &built);  /*@copy*/
#ifndef RACY
    __syncthreads();
#endif
    if (threadIdx.x >= 32) built.words[threadIdx.x - 32] = 0;  /*@clear*/
}
