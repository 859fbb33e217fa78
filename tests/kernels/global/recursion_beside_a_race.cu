// A function that calls itself reads shared memory by strong loads; beside it, CTAs store to the same words.
//
// launch: grid=3 block=64
// arg:    out f32[192]=zeros
// expect: global-race WAW @store @store severity=error
// result: out = np.tile(np.arange(63, -1, -1), 3) + 5
__device__ __noinline__ float mirrored(volatile float* tile, int t, int depth) {
    if (depth == 0) return tile[63 - t];
    return mirrored(tile, t, depth - 1) + 1;
}
#ifdef RACY
#define STEP 48
#else
#define STEP 64
#endif
extern "C" __global__ void kernel(float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    float value = mirrored(tile, t, 5);
    out[blockIdx.x * STEP + t] = value;  /*@store*/
}
