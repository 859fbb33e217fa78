// A 16-byte store is read back word by word by another warp.
// launch: grid=1 block=64
// arg: x f32[256]=arange
// arg: out f32[256]=zeros
// expect: data-race RAW @write @read severity=error
// result: out = x[::-1]
extern "C" __global__ void kernel(const float4* x, float* out) {
    __shared__ float4 tile[64];
    int t = threadIdx.x;
    tile[t] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();
    tile[t] = x[t];  /*@write*/
#ifndef RACY
    __syncthreads();
#endif
    for (int k = 0; k < 4; k++) {
        out[k * 64 + t] = ((const float*)tile)[255 - (k * 64 + t)];  /*@read*/
    }
}
