// The lanes clear a map, and one of them describes the tensor: it replaces fields of a map that the other lanes still write.
// launch: grid=1 block=32 arch=sm_90a
// arg: map u32[32]=arange
// expect: data-race WAW @zero @replace severity=error
// result: map = np.where(np.arange(32) == 8, 99, 0)
#include "../tensormap.cuh"
extern "C" __global__ void kernel(u32* map) {
    __shared__ SharedMap built;
    built.words[threadIdx.x] = 0;  /*@zero*/
#ifndef RACY
    __syncwarp();
#endif
    if (threadIdx.x == 0) set_width(&built, 100);  /*@replace*/
    publish(map, &built);
}
