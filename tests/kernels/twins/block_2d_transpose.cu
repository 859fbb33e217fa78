// A transpose in a two-dimensional block: warps are made of two rows each.
// launch: grid=1 block=16x16
// arg: x f32[16,16]=arange
// arg: out f32[16,16]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x.T
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[16][17];
    int tx = threadIdx.x, ty = threadIdx.y;
    tile[ty][tx] = 0.0f;
    __syncthreads();
    tile[ty][tx] = x[ty * 16 + tx];  /*@write*/
#ifndef RACY
    __syncthreads();
#endif
    out[ty * 16 + tx] = tile[tx][ty];  /*@read*/
}
