// The maximum of a grid, which each thread compares with its own value before it stores that.
//
// launch: grid=2 block=32
// arg:    most i32[1]=zeros
// expect: global-race @update severity=error
// expect: data-race @update severity=error
// result: most = np.full(1, 63, np.int32)
extern "C" __global__ void kernel(int* most) {
    int value = int(blockIdx.x * blockDim.x + threadIdx.x);
#ifdef RACY
    if (value > *most) *most = value;  /*@update*/
#else
    atomicMax(most, value);
#endif
}
