// Lanes of one warp exchange data through global memory without a barrier of the warp.
//
// launch: grid=2 block=32
// arg:    data f32[64]=zeros
// arg:    out f32[64]=zeros
// expect: data-race @store @load severity=error
// result: out = np.concatenate([np.arange(32)[::-1]] * 2).astype(np.float32)
extern "C" __global__ void kernel(float* data, float* out) {
    float* mine = data + blockIdx.x * 32;
    mine[threadIdx.x] = threadIdx.x;  /*@store*/
#ifndef RACY
    __syncwarp();
#endif
    out[blockIdx.x * 32 + threadIdx.x] = mine[31 - threadIdx.x];  /*@load*/
}
