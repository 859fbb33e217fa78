// A three-dimensional block and grid: who is in which warp depends on all three indices.
// launch: grid=1x2x2 block=4x4x8
// arg: x f32[4,8,4,4]=arange
// arg: out f32[4,8,4,4]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[:, ::-1]
extern "C" __global__ void kernel(const float* x, float* out) {
    __shared__ float tile[8][4][4];
    int tx = threadIdx.x, ty = threadIdx.y, tz = threadIdx.z;
    int i = ((blockIdx.z * 2 + blockIdx.y) * 8 + tz) * 16 + ty * 4 + tx;
    tile[tz][ty][tx] = 0.0f;
    __syncthreads();
    tile[tz][ty][tx] = x[i];  /*@write*/
#ifndef RACY
    __syncthreads();
#endif
    out[i] = tile[7 - tz][ty][tx];  /*@read*/
}
