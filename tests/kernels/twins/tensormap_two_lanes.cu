// Two lanes replace one field each. A replacement is an operation on the whole map: the one may undo the other.
// launch: grid=1 block=32 arch=sm_90a
// arg: map u32[32]=arange
// expect: data-race WAW @width @height severity=error
// result: map = np.where(np.arange(32) == 8, 99, np.where(np.arange(32) == 9, 49, 0))
#include "../tensormap.cuh"
extern "C" __global__ void kernel(u32* map) {
    __shared__ SharedMap built;
    built.words[threadIdx.x] = 0;
    __syncwarp();
    if (threadIdx.x == 0) set_width(&built, 100);  /*@width*/
#ifndef RACY
    __syncwarp();
#endif
    if (threadIdx.x == 1) set_height(&built, 50);  /*@height*/
    publish(map, &built);
}
